// A runtime as csrc/runtime.h has it, whose device has matrix engines: what the host side launches on them, the emulation
// of host-build runs. No other kernel is here, so that an operator which takes another one says so.
#include "runtime.h"

#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include <functional>

#include "gemm/gemm.cpp"  // with which this is one source, compiled once
#include "xmx/product.h"

namespace esimd_ops {
namespace {

using Arguments = std::initializer_list<KernelArgument>;

template <typename Row, typename Scale, int kBlocks>
struct Product {
  const sycl::half* input;
  const void* weight;
  const void* scale;
  sycl::half* output;
  int64_t M, N, K, token_blocks;

  void operator()(sycl::nd_item<1> item) const SYCL_ESIMD_KERNEL {
    xmx::product<Row, Scale, kBlocks>(input, weight, scale, output, M, N, K, token_blocks, item.get_group(0),
                                      item.get_local_id(0));
  }
};

template <typename T>
T read(const KernelArgument& argument) {
  TORCH_CHECK(argument.size == sizeof(T) && argument.is_pointer == std::is_pointer_v<T>);
  return *static_cast<const T*>(argument.data);
}

template <typename Kernel>
void run_kernel(sycl::queue& queue, Range range, Arguments arguments) {
  TORCH_CHECK(arguments.size() == 8);
  const auto* a = arguments.begin();
  const Kernel kernel{read<const sycl::half*>(a[0]), read<const void*>(a[1]), read<const void*>(a[2]),
                      read<sycl::half*>(a[3]),       read<int64_t>(a[4]),     read<int64_t>(a[5]),
                      read<int64_t>(a[6]),           read<int64_t>(a[7])};
  queue.submit([&](sycl::handler& handler) {
    handler.parallel_for(sycl::nd_range<1>(range.groups * range.group_size, range.group_size), kernel);
  });
}

const std::map<std::string, std::function<void(sycl::queue&, Range, Arguments)>> kKernels{
#define BOTH(ROW, SCALE)                                                             \
  {"xmx/on_xmx<" #ROW ", " #SCALE ", 1>", run_kernel<Product<xmx::ROW, xmx::SCALE, 1>>}, \
  {"xmx/on_xmx<" #ROW ", " #SCALE ", 4>", run_kernel<Product<xmx::ROW, xmx::SCALE, 4>>},
    BOTH(HalfRow, Unscaled) BOTH(Int4RoundedRow, Unscaled) BOTH(Fp8BlockRow, Unscaled)
#undef BOTH
#define BOTH(FORMAT)                                                                                                \
  {"xmx/on_xmx<Fp8Row<" #FORMAT ">, TensorScale, 1>", run_kernel<Product<xmx::Fp8Row<xmx::FORMAT>, xmx::TensorScale, 1>>}, \
  {"xmx/on_xmx<Fp8Row<" #FORMAT ">, TensorScale, 4>", run_kernel<Product<xmx::Fp8Row<xmx::FORMAT>, xmx::TensorScale, 4>>},
    BOTH(E4M3) BOTH(E5M2Flush)};

// The product of esimd_gemv_fp16 with several tokens.
at::Tensor halves(at::Tensor input, at::Tensor weight, at::Tensor output) {
  gemm::run({"InOrder", "HalfRow", "Unscaled"}, input, weight, weight, output,
            {input.size(0), weight.size(0), input.size(1)});
  return output;
}

}  // namespace

Queue queue(const at::Tensor&) { return {&c10::xpu::getCurrentXPUStream().queue(), false}; }

bool has_matrix_engines(Queue) { return true; }

at::Tensor temporary(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype) {
  return like.new_empty(sizes, like.options().dtype(dtype));
}

void launch(Queue queue, Range range, const Kernel& kernel, Arguments arguments) {
  if (range.groups == 0) return;
  const auto found = kKernels.find(kernel.name);
  TORCH_CHECK(found != kKernels.end(), "not on the matrix engines: ", kernel.name);
  TORCH_CHECK(kernel.lanes == 1);
  found->second(*static_cast<sycl::queue*>(queue.sycl_queue), range, arguments);
}

}  // namespace esimd_ops

TORCH_LIBRARY(esimd_xmx, m) {
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)");
  m.def("esimd_gemm_int4_pgrp(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> Tensor(a!)");
  m.def("esimd_gemm_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> Tensor(a!)");
  m.def(
      "esimd_gemm_fp8_blockscale(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output, int block_n, "
      "int block_k) -> Tensor(a!)");
}

TORCH_LIBRARY_IMPL(esimd_xmx, XPU, m) {
  m.impl("esimd_gemv_fp16", esimd_ops::halves);
  m.impl("esimd_gemm_int4_pgrp", esimd_ops::gemm_int4_pgrp);
  m.impl("esimd_gemm_fp8_pert", esimd_ops::gemm_fp8_pert);
  m.impl("esimd_gemm_fp8_blockscale", esimd_ops::gemm_fp8_blockscale);
}
