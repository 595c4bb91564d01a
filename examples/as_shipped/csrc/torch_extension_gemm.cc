// Registers the GEMM and block-scaled operators, in the namespace that torch_extension.cc opened.
#include "kernel_ops.h"

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  m.def(
      "esimd_gemm_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, Tensor "
      "output) -> Tensor");
  m.impl("esimd_gemm_fp8_pert", torch::kCPU, &esimd_ops::gemm_fp8_pert);

  // input [M, K] fp16, weight [N, K/2] uint8, weight_scale [N, K/128] fp16, output [M, N] fp16
  m.def(
      "esimd_gemm_int4_pgrp(Tensor input, Tensor weight, Tensor weight_scale, Tensor "
      "output) -> Tensor");
  m.impl("esimd_gemm_int4_pgrp", torch::kCPU, &esimd_ops::gemm_int4_pgrp);

  m.def(
      "esimd_gemm_fp8_blockscale(Tensor input, Tensor weight, Tensor weight_scale, Tensor "
      "output, int block_n, int block_k) -> Tensor");
  m.impl("esimd_gemm_fp8_blockscale", torch::kCPU, &esimd_ops::gemm_fp8_blockscale);

  m.def(
      "esimd_gemv_fp8_blockscale_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, "
      "Tensor w1, Tensor s1, Tensor(b!) o1, int block_n, int block_k) -> Tensor(a!)");
  m.impl("esimd_gemv_fp8_blockscale_fused2", torch::kCPU,
         &esimd_ops::gemv_fp8_blockscale_fused2);

  m.def(
      "esimd_gemv_fp8_blockscale_fp16_fused2(Tensor input, Tensor w0, Tensor s0, "
      "Tensor(a!) o0, Tensor w1, Tensor(b!) o1, int block_n, int block_k) -> Tensor(a!)");
  m.impl("esimd_gemv_fp8_blockscale_fp16_fused2", torch::kCPU,
         &esimd_ops::gemv_fp8_blockscale_fp16_fused2);

  m.def(
      "esimd_norm_gemv_fp8_blockscale(Tensor x, Tensor z, Tensor norm_weight, Tensor "
      "gemv_weight, Tensor gemv_scale, Tensor(a!) output, int HV, int V, float eps) -> "
      "Tensor(a!)");
  m.impl("esimd_norm_gemv_fp8_blockscale", torch::kCPU, &esimd_ops::norm_gemv_fp8_blockscale);
}
