// Registers the GEMM operators, in the namespace that torch_extension.cc opened.
#include "kernel_ops.h"

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  // input [M, K] fp16, weight [N, K/2] uint8, weight_scale [N, K/128] fp16, output [M, N] fp16
  m.def(
      "esimd_gemm_int4_pgrp(Tensor input, Tensor weight, Tensor weight_scale, Tensor "
      "output) -> Tensor");
  m.impl("esimd_gemm_int4_pgrp", torch::kCPU, &esimd_ops::gemm_int4_pgrp);
}
