// A runtime as csrc/runtime.h has it, whose device has matrix engines: what the host side launches on them, the
// emulation of host-build runs. Of other kernels only the norms before a product are here, so that an operator which
// takes another one says so.
#include "runtime.h"

#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include <cmath>
#include <functional>

// With which this is one source, compiled once.
#include "gemm/gemm.cpp"
#include "gemv/gemv.cpp"
#include "gemv/gemv_fp8.cpp"
#include "gemv/norm_gemv.cpp"
#include "moe/moe.cpp"
#include "drop_return.h"
#include "xmx/matvec.h"
#include "xmx/product.h"
#include "xmx/xmx.cpp"

namespace esimd_ops {
namespace {

using Arguments = std::initializer_list<KernelArgument>;

template <typename T>
T read(const KernelArgument& argument) {
  TORCH_CHECK(argument.size == sizeof(T) && argument.is_pointer == std::is_pointer_v<T>);
  return *static_cast<const T*>(argument.data);
}

// A kernel's body takes what the kernel takes, and its group and thread.
template <auto kBody, typename... All>
void run_body(sycl::queue& queue, Range range, Arguments arguments, void (*)(All...)) {
  constexpr size_t kGiven = sizeof...(All) - 2;
  TORCH_CHECK(arguments.size() == kGiven);
  [&]<size_t... i>(std::index_sequence<i...>) {
    const std::tuple values(read<std::tuple_element_t<i, std::tuple<All...>>>(arguments.begin()[i])...);
    queue.submit([&](sycl::handler& handler) {
      handler.parallel_for(sycl::nd_range<1>(range.groups * range.group_size, range.group_size),
                           [values](sycl::nd_item<1> item) SYCL_ESIMD_KERNEL {
                             kBody(std::get<i>(values)..., item.get_group(0), static_cast<int>(item.get_local_id(0)));
                           });
    });
  }(std::make_index_sequence<kGiven>());
}

template <auto kBody>
void run_kernel(sycl::queue& queue, Range range, Arguments arguments) {
  run_body<kBody>(queue, range, arguments, kBody);
}

}  // namespace

namespace xmx {

const std::map<std::string, std::function<void(sycl::queue&, Range, Arguments)>> kKernels{
#include "kernels.inc"
};

}  // namespace xmx

namespace {

using sycl::half;

// y = a * inverse root of the mean of squares, for each row of `width`.
template <typename Element, typename Each>
void normed(int64_t rows, int64_t width, float eps, Element element, Each each) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += double(element(row * width + k)) * element(row * width + k);
    const float inverse = 1 / std::sqrt(sum / width + eps);
    for (int64_t k = 0; k < width; ++k) each(row * width + k, k, element(row * width + k) * inverse);
  }
}

// The kernels of gemv.sycl that norm what a product reads.
bool norm(const std::string& name, Range range, const KernelArgument* a) {
  const std::string norm = name.substr(0, name.find("<half, "));
  const auto halves = [&](int i) { return read<const half*>(a[i]); };
  const auto written = [&](int i) { return const_cast<half*>(halves(i)); };
  if (norm == "gemv/resadd_norm") {
    float* y = read<float*>(a[5]);
    const float scalar = read<float>(a[7]);
    const int64_t K = read<int64_t>(a[8]);
    for (int64_t k = 0; k < K; ++k) y[k] = (float(halves(0)[k]) + float(halves(1)[k])) * scalar;
    for (int64_t k = 0; k < K && written(3); ++k) written(3)[k] = half(y[k]);
    const std::vector<float> sums(y, y + K);
    normed(1, K, read<float>(a[6]), [&](int64_t i) { return sums[i]; }, [&](int64_t i, int64_t k, float x) {
      y[i] = x * float(halves(2)[k]);
      if (written(4)) written(4)[i] = half(y[i]);
    });
  } else if (norm == "gemv/gated_norm") {
    normed(range.groups, read<int64_t>(a[5]), read<float>(a[4]), [&](int64_t i) { return float(halves(0)[i]); },
           [&](int64_t i, int64_t k, float x) {
             const float z = float(halves(1)[i]);
             read<float*>(a[3])[i] = x * float(halves(2)[k]) * (z / (1.0f + std::exp(-z)));
           });
  } else if (norm == "gemv/two_norms") {
    normed(1, read<int64_t>(a[6]), read<float>(a[5]), [&](int64_t i) { return float(halves(0)[i]); },
           [&](int64_t i, int64_t, float x) {
             written(3)[i] = half(x * float(halves(2)[i]));
             read<float*>(a[4])[i] = x * float(halves(1)[i]);
           });
  } else {
    return false;
  }
  return true;
}

}  // namespace

Queue queue(const at::Tensor&) { return {&c10::xpu::getCurrentXPUStream().queue(), false}; }

bool has_matrix_engines(Queue) { return true; }

at::Tensor temporary(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  return like.new_empty(sizes, like.options().dtype(dtype));
}

void launch(Queue queue, Range range, const Kernel& kernel, Arguments arguments) {
  if (range.groups == 0 || norm(kernel.name, range, arguments.begin())) return;
  const auto found = xmx::kKernels.find(kernel.name);
  TORCH_CHECK(found != xmx::kKernels.end(), "not on the matrix engines: ", kernel.name);
  TORCH_CHECK(kernel.lanes == 1);
  found->second(*static_cast<sycl::queue*>(queue.sycl_queue), range, arguments);
}

}  // namespace esimd_ops

TORCH_LIBRARY(esimd_xmx, m) {
#include "definitions.inc"
}

TORCH_LIBRARY_IMPL(esimd_xmx, XPU, m) {
#include "implementations.inc"
}
