// Registers the mixture of experts operators.
#include "kernel_ops.h"

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  m.def(
      "esimd_moe_topk(Tensor router_logits, Tensor top_values, Tensor top_indices, int T) "
      "-> Tensor");
  m.impl("esimd_moe_topk", torch::kCPU, &esimd_ops::moe_topk);

  m.def(
      "esimd_moe_scatter(Tensor hidden_states, Tensor router_top_value, Tensor "
      "sorted_token_ids, Tensor scattered_hidden, Tensor scattered_weights, int K, int "
      "topk, int total_expanded) -> Tensor");
  m.impl("esimd_moe_scatter", torch::kCPU, &esimd_ops::moe_scatter);

  // counts, prefix sum and scatter: five outputs
  m.def(
      "esimd_moe_scatter_fused(Tensor hidden_states, Tensor top_values, Tensor "
      "top_indices, Tensor scattered_hidden, Tensor scattered_weights, Tensor topk_ids, "
      "Tensor expert_start, Tensor max_tokens_out, int K, int topk, int T, int "
      "num_experts) -> Tensor");
  m.impl("esimd_moe_scatter_fused", torch::kCPU, &esimd_ops::moe_scatter_fused);

  m.def(
      "esimd_moe_gelu_tanh_mul(Tensor input, Tensor output, int N_gate_up, int N_half, int "
      "total_rows) -> Tensor");
  m.impl("esimd_moe_gelu_tanh_mul", torch::kCPU, &esimd_ops::moe_gelu_tanh_mul);

  m.def(
      "esimd_moe_silu_mul(Tensor input, Tensor output, int N_gate_up, int N_half, int "
      "total_rows) -> Tensor");
  m.impl("esimd_moe_silu_mul", torch::kCPU, &esimd_ops::moe_silu_mul);

  // the way back
  m.def(
      "esimd_moe_gather(Tensor moe_output, Tensor topk_ids, Tensor scattered_weights, "
      "Tensor final_hidden, int K, int topk, int T) -> Tensor");
  m.impl("esimd_moe_gather", torch::kCPU, &esimd_ops::moe_gather);

  m.def(
      "esimd_moe_gemm_fp8(Tensor input, Tensor weight, Tensor scale, Tensor output, Tensor "
      "expert_idx, int N, int K, int num_experts, int max_tokens_per_expert) -> Tensor");
  m.impl("esimd_moe_gemm_fp8", torch::kCPU, &esimd_ops::moe_gemm_fp8);

  m.def(
      "esimd_moe_gemm_fp8_pert(Tensor input, Tensor weight, Tensor scale, Tensor output, "
      "Tensor expert_idx, int N, int K, int num_experts, int max_tokens_per_expert) -> "
      "Tensor");
  m.impl("esimd_moe_gemm_fp8_pert", torch::kCPU, &esimd_ops::moe_gemm_fp8_pert);

  m.def(
      "esimd_moe_gemm_fp8_blockscale(Tensor input, Tensor weight, Tensor weight_scale, "
      "Tensor(a!) output, Tensor expert_idx, int N, int K, int num_experts, int block_n, "
      "int block_k) -> Tensor(a!)");
  m.impl("esimd_moe_gemm_fp8_blockscale", torch::kCPU, &esimd_ops::moe_gemm_fp8_blockscale);
}
