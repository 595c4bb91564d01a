// A device `xpu` for a torch that has none: its tensors lie in the CPU's memory, its queue is that of SYCL's CPU device.
//
// So that a library which was built for a card can be run here, from the SPIR-V that it carries: the library calls the
// two functions of c10::xpu below, and its operators get tensors whose device is xpu. What torch itself is asked to do
// with such tensors, it does as if they were CPU tensors. Preloaded, as functions of c10::xpu must be found here first.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include <ATen/ATen.h>
#include <ATen/native/TensorShape.h>

namespace c10::xpu {

XPUStream getCurrentXPUStream(DeviceIndex) { return XPUStream(Stream(Stream::DEFAULT, Device(kXPU, 0))); }

sycl::queue& XPUStream::queue() const {
  static auto& queue = *new sycl::queue(sycl::cpu_selector_v, sycl::property::queue::in_order());
  return queue;
}

}  // namespace c10::xpu

namespace {

using c10::DeviceType;

sycl::queue& queue() { return c10::xpu::getCurrentXPUStream().queue(); }

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::XPU> {
  void* getStreamNativeHandle(const c10::Stream) const override { return &queue(); }
};
C10_REGISTER_GUARD_IMPL(XPU, Guard)

void wait() { queue().wait_and_throw(); }

// The same memory as a tensor of another device. What the CPU reads has been computed, what is freed is no longer used.
at::Tensor on(const at::Tensor& tensor, DeviceType type) {
  if (!tensor.defined() || tensor.device().type() == type) return tensor;
  wait();
  const c10::Device device(type, type == DeviceType::XPU ? 0 : -1);
  const c10::Storage& from = tensor.storage();
  auto* kept = new c10::Storage(from);
  c10::DataPtr data(from.mutable_data(), kept, [](void* context) {
    wait();
    delete static_cast<c10::Storage*>(context);
  }, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), from.nbytes(), std::move(data), nullptr, false);
  const auto key = type == DeviceType::XPU ? c10::DispatchKey::XPU : c10::DispatchKey::CPU;
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  made.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return made;
}

// Any operator of torch on such tensors: the CPU's. A result that is an argument stays that argument.
void as_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  std::vector<std::pair<at::Tensor, at::Tensor>> seen;
  const auto to_cpu = [&](const at::Tensor& tensor) {
    at::Tensor made = on(tensor, DeviceType::CPU);
    if (tensor.defined()) seen.emplace_back(tensor, made);
    return made;
  };
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = to_cpu(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& tensor : list) tensor = to_cpu(tensor);
      value = list;
    } else if (value.isDevice() && value.toDevice().is_xpu()) {
      value = c10::Device(DeviceType::CPU);
    }
  }
  op.callBoxed(stack);
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (!value.isTensor()) continue;
    const at::Tensor result = value.toTensor();
    const auto same = std::find_if(seen.begin(), seen.end(), [&](const auto& pair) { return pair.second.is_same(result); });
    value = same == seen.end() ? on(result, DeviceType::XPU) : same->first;
  }
}

at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool) {
  on(to, DeviceType::CPU).copy_(on(from, DeviceType::CPU));
  return to;
}

void record_stream(at::Tensor&, at::Stream) {}  // what is freed waits for the queue: see `on`

TORCH_LIBRARY_IMPL(_, XPU, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&as_cpu>()); }

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("copy_", copy_);
  m.impl("record_stream", record_stream);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
}

}  // namespace
