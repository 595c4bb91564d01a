// Two devices that stand in for cards: torch's PrivateUse1, with streams behind which are in-order SYCL queues of the CPU
// device, as torch's XPU build has them. Memory that is let go of is overwritten: at once, or where it was recorded, when
// the stream comes to it. Tests can hold a stream back and make work on it fail.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorShape.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sycl/sycl.hpp>

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr int kDevices = 2, kStreams = 2;

struct Lane {
  explicit Lane(bool in_order)
      : queue(sycl::device(sycl::cpu_selector_v),
              [this](sycl::exception_list errors) {
                for (const auto& error : errors) late = error;
              },
              in_order ? sycl::property_list{sycl::property::queue::in_order{}} : sycl::property_list{}) {}

  void synchronize() {
    queue.wait_and_throw();
    if (late) std::rethrow_exception(std::exchange(late, nullptr));
  }

  std::exception_ptr late;
  sycl::queue queue;
};

// Never destroyed, as SYCL objects must not be.
struct World {
  std::map<std::pair<int, int64_t>, Lane*> lanes;
  std::array<int64_t, kDevices> current{};
  int device = 0;
  std::mutex mutex;
  std::map<void*, std::pair<size_t, std::set<Lane*>>> memory;
  int64_t kept = 0, let_go = 0;  // allocations that waited for a stream, and all that ended
  std::condition_variable open;
  std::mutex gate;
  bool held = false;
};

World& world() {
  static World& one = *new World;
  return one;
}

Lane& lane(int device, int64_t stream) {
  Lane*& found = world().lanes[{device, stream}];
  if (!found) found = new Lane(stream < kStreams);  // one more stream, that keeps no order
  return *found;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Device of(int device) { return {kType, static_cast<c10::DeviceIndex>(device)}; }
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return of(world().device); }
  void setDevice(c10::Device device) const override { world().device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { world().device = device.index(); }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, world().current.at(device.index()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::UNSAFE, device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    auto& current = world().current.at(stream.device_index());
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), std::exchange(current, stream.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return &lane(stream.device_index(), stream.id()).queue;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

void end(void* data) {
  World& here = world();
  std::unique_lock lock(here.mutex);
  const auto found = here.memory.find(data);
  const auto [size, streams] = found->second;
  here.memory.erase(found);
  ++here.let_go;
  here.kept += !streams.empty();
  lock.unlock();
  const auto overwrite = [data = data, size = size] {
    std::memset(data, 0xff, size);
    std::free(data);
  };
  if (streams.empty()) return overwrite();
  Lane& last = **streams.begin();
  last.queue.submit([&](sycl::handler& handler) { handler.host_task(overwrite); });
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* const data = std::aligned_alloc(64, (size + 127) / 64 * 64);
    std::memset(data, 0xff, size);
    const std::lock_guard lock(world().mutex);
    world().memory[data] = {size, {}};
    return {data, data, &end, Guard::of(world().device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &end; }
  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }
};

Allocator& allocator() {
  static Allocator& one = *new Allocator;
  return one;
}

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  world().device = device->has_index() ? device->index() : world().device;
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), *dtype, format);
}

void record_stream(at::Tensor& tensor, at::Stream stream) {
  const std::lock_guard lock(world().mutex);
  world().memory.at(tensor.storage().mutable_data()).second.insert(&lane(stream.device_index(), stream.id()));
}

// Our operators know XPU: a stand-in's tensors go where those of a card would.
void as_on_xpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(op.schema().name().starts_with("esimd_ops::"), op.schema().name(), " is not there for a stand-in");
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::XPU), stack);
}

at::Tensor place(const at::Tensor& tensor, int64_t device) {
  world().device = device;
  const at::Tensor made = at::detail::empty_generic(
      tensor.sizes(), &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.scalar_type(), std::nullopt);
  std::memcpy(made.mutable_data_ptr(), tensor.contiguous().const_data_ptr(), tensor.nbytes());
  return made;
}

at::Tensor look(const at::Tensor& tensor) {
  const at::Tensor made = at::empty(tensor.sizes(), at::dtype(tensor.scalar_type()));
  std::memcpy(made.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  return made;
}

void fail(int64_t device, int64_t stream) {
  lane(device, stream).queue.submit([&](sycl::handler& handler) {
    handler.host_task([] { throw std::runtime_error("planted"); });
  });
}

void hold(int64_t device, int64_t stream) {
  World& here = world();
  here.held = true;
  lane(device, stream).queue.submit([&](sycl::handler& handler) {
    handler.host_task([&here] {
      std::unique_lock lock(here.gate);
      here.open.wait(lock, [&] { return !here.held; });
    });
  });
}

void let_go() {
  {
    const std::lock_guard lock(world().gate);
    world().held = false;
  }
  world().open.notify_all();
}

}  // namespace

TORCH_LIBRARY(stand_in, m) {
  m.def("place(Tensor tensor, int device) -> Tensor", &place);
  m.def("look(Tensor tensor) -> Tensor", &look);
  m.def("stream(int device, int stream) -> ()", [](int64_t device, int64_t stream) { world().current.at(device) = stream; });
  m.def("synchronize(int device, int stream) -> ()", [](int64_t device, int64_t stream) { lane(device, stream).synchronize(); });
  m.def("fail(int device, int stream) -> ()", &fail);
  m.def("hold(int device, int stream) -> ()", &hold);
  m.def("let_go() -> ()", &let_go);
  m.def("ended() -> (int, int)", [] { return std::tuple(world().let_go, world().kept); });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("record_stream", &record_stream);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&as_on_xpu>()); }
