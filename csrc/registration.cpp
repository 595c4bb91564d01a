// Every operator's schema and implementation.
//
// An operator that writes its arguments says so and returns nothing: the form that torch.compile can trace. The host
// functions return the caller's buffer, as the originals do, and drop_return leaves it behind.
#include <torch/library.h>

#include "ops.h"
#include "schema_patch/source/drop_return.h"  // the wrapper that the patcher writes into other people's registrations

#ifdef ESIMD_OPS_XPU
#define ESIMD_OPS_DISPATCH_KEY XPU
#else
#define ESIMD_OPS_DISPATCH_KEY CPU
#endif

TORCH_LIBRARY(esimd_ops, m) {
  // norm
  m.def("esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()");
  m.def("esimd_fused_add_rms_norm(Tensor(a!) hidden_states, Tensor(b!) residual, Tensor weight, float eps) -> ()");
  m.def(
      "esimd_fused_scaled_add_rms_norm(Tensor(a!) hidden_states, Tensor(b!) residual, Tensor weight, float eps, "
      "float scalar) -> ()");
  m.def(
      "esimd_fused_add_rms_norm_batched(Tensor(a!) hidden_states, Tensor(b!) residual, Tensor weight, "
      "float eps) -> ()");
  m.def("esimd_rms_norm_gated(Tensor x, Tensor z, Tensor weight, Tensor(a!) output, float eps) -> ()");
  m.def(
      "esimd_norm_add_norm(Tensor h2_raw, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out, float eps1, "
      "float eps2) -> ()");
  m.def(
      "esimd_accum_norm_add_norm(Tensor routed_output, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out, "
      "int top_k, float eps1, float eps2) -> ()");

  // gemv
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.def(
      "esimd_gemv_int4_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1) -> ()");
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> ()");
  m.def("esimd_gemv_fp16_gelu_mul(Tensor input, Tensor weight, Tensor(a!) output) -> ()");

  // gemv, fp8 weights
  m.def("esimd_gemv_fp8_pern(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output, int N, int K) -> ()");
  m.def(
      "esimd_gemv_fp8_pern_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, int N0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1, int N1, int K) -> ()");
  m.def(
      "esimd_gemv_fp8_pern_fused3(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, int N0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1, int N1, Tensor w2, Tensor s2, Tensor(c!) o2, int N2, int K) -> ()");
  m.def("esimd_gemv_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.def(
      "esimd_gemv_fp8_pert_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1) -> ()");
  m.def(
      "esimd_gemv_fp8_pert_fused3(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1, Tensor w2, Tensor s2, Tensor(c!) o2) -> ()");
  m.def("esimd_gemv_fp8_pert_bmg(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.def(
      "esimd_gemv_fp8_blockscale_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, Tensor w1, Tensor s1, "
      "Tensor(b!) o1, int block_n, int block_k) -> ()");
  m.def(
      "esimd_gemv_fp8_blockscale_fp16_fused2(Tensor input, Tensor w0, Tensor s0, Tensor(a!) o0, Tensor w1, "
      "Tensor(b!) o1, int block_n, int block_k) -> ()");

  // gemv after a norm
  m.def(
      "esimd_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor(a!) residual, Tensor norm_weight, "
      "Tensor gemv_weight, Tensor gemv_scale, Tensor(b!) output, Tensor(c!) normed_out, float eps) -> ()");
  m.def(
      "esimd_resadd_norm_gemv_int4_pert(Tensor hidden_states, Tensor(a!) residual, Tensor norm_weight, "
      "Tensor gemv_weight, Tensor gemv_scale, Tensor(b!) output, Tensor(c!) normed_out, float eps) -> ()");
  m.def(
      "esimd_resadd_norm_gemv2_fp8_pert(Tensor hidden_states, Tensor residual, Tensor norm_weight, Tensor w0, "
      "Tensor s0, Tensor(a!) o0, Tensor w1, Tensor s1, Tensor(b!) o1, float eps) -> ()");
  m.def(
      "esimd_scaled_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor(a!) residual, Tensor norm_weight, "
      "Tensor qkv_weight, Tensor qkv_scale, Tensor(b!) qkv_out, float eps, float scalar) -> ()");
  m.def(
      "esimd_norm_gemv_fp8_pert(Tensor x, Tensor z, Tensor norm_weight, Tensor gemv_weight, Tensor gemv_scale, "
      "Tensor(a!) output, int HV, int V, float eps) -> ()");
  m.def(
      "esimd_norm_gemv_int4_pert(Tensor x, Tensor z, Tensor norm_weight, Tensor gemv_weight, Tensor gemv_scale, "
      "Tensor(a!) output, int HV, int V, float eps) -> ()");
  m.def(
      "esimd_norm_gemv_fp8_blockscale(Tensor x, Tensor z, Tensor norm_weight, Tensor gemv_weight, Tensor gemv_scale, "
      "Tensor(a!) output, int HV, int V, float eps) -> ()");
  m.def(
      "esimd_norm_gemv_norm_fp16(Tensor residual, Tensor scale_with_root, Tensor proj_w, Tensor pre_ff_w, "
      "Tensor(a!) router_logits, Tensor(b!) moe_input, float eps) -> ()");

  // gemm
  m.def("esimd_gemm_int4_pgrp(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.def("esimd_gemm_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.def(
      "esimd_gemm_fp8_blockscale(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output, int block_n, "
      "int block_k) -> ()");

  // moe
  m.def("esimd_moe_topk(Tensor router_logits, Tensor(a!) top_values, Tensor(b!) top_indices, int T) -> ()");
  m.def(
      "topk_v2(Tensor router_logits, Tensor(a!) top_values, Tensor(b!) top_indices, int T, int num_experts, "
      "int topk) -> ()");
  m.def(
      "esimd_moe_scatter(Tensor hidden_states, Tensor router_top_value, Tensor sorted_token_ids, "
      "Tensor(a!) scattered_hidden, Tensor(b!) scattered_weights, int K, int topk, int total_expanded) -> ()");
  m.def(
      "esimd_moe_scatter_fused(Tensor hidden_states, Tensor top_values, Tensor top_indices, "
      "Tensor(a!) scattered_hidden, Tensor(b!) scattered_weights, Tensor(c!) topk_ids, Tensor(d!) expert_start, "
      "Tensor(e!) max_tokens_out, int K, int topk, int T, int num_experts) -> ()");
  m.def(
      "esimd_moe_gather(Tensor moe_output, Tensor topk_ids, Tensor scattered_weights, Tensor(a!) final_hidden, "
      "int K, int topk, int T) -> ()");

  // moe, the experts
  m.def("esimd_moe_silu_mul(Tensor input, Tensor(a!) output, int N_gate_up, int N_half, int total_rows) -> ()");
  m.def("esimd_moe_gelu_tanh_mul(Tensor input, Tensor(a!) output, int N_gate_up, int N_half, int total_rows) -> ()");
  m.def(
      "esimd_moe_gemm_fp8(Tensor input, Tensor weight, Tensor scale, Tensor(a!) output, Tensor expert_idx, int N, "
      "int K, int num_experts, int max_tokens_per_expert) -> ()");
  m.def(
      "esimd_moe_gemm_fp8_pert(Tensor input, Tensor weight, Tensor scale, Tensor(a!) output, Tensor expert_idx, "
      "int N, int K, int num_experts, int max_tokens_per_expert) -> ()");
  m.def(
      "esimd_moe_gemm_fp8_blockscale(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output, "
      "Tensor expert_idx, int N, int K, int num_experts, int block_n, int block_k) -> ()");

  // rope
  m.def(
      "esimd_qkv_split_norm_rope(Tensor qkv_state, Tensor(a!) q_out, Tensor(b!) gate_out, Tensor(c!) k_out, "
      "Tensor(d!) v_out, Tensor norm_wq, Tensor norm_wk, Tensor positions, int q_heads, int kv_heads, "
      "bool attn_output_gate, int rotary_dim, Tensor cos_sin_cache) -> ()");
  m.def(
      "esimd_qkv_split_norm_rope_v(Tensor qkv_state, Tensor(a!) q_out, Tensor(b!) gate_out, Tensor(c!) k_out, "
      "Tensor(d!) v_out, Tensor norm_wq, Tensor norm_wk, Tensor norm_wv, Tensor positions, int q_heads, "
      "int kv_heads, bool attn_output_gate, int rotary_dim, Tensor cos_sin_cache) -> ()");

  // gdn
  m.def(
      "esimd_gdn_conv_fused(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, Tensor conv_bias, "
      "Tensor conv_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, Tensor(b!) ssm_state, "
      "Tensor ssm_state_indices, Tensor(c!) output, Tensor(d!) z_out, int N, int H, int HV, int K, int V, "
      "float scale) -> ()");
  m.def(
      "esimd_gdn_conv_fused_seq(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, Tensor conv_bias, "
      "Tensor conv_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, Tensor(b!) ssm_state, "
      "Tensor ssm_state_indices, Tensor(c!) output, Tensor(d!) z_out, int N, int H, int HV, int K, int V, "
      "float scale) -> ()");
  m.def(
      "esimd_gdn_conv_fused_seq_spec(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, Tensor conv_bias, "
      "Tensor spec_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, Tensor(b!) ssm_state, Tensor(c!) output, "
      "Tensor(d!) z_out, Tensor token_indx, Tensor num_accepted_tokens, int num_spec_decodes, int num_spec_tokens, "
      "int H, int HV, int K, int V, float scale) -> ()");

  // quant
  m.def("q4_0_quantize(Tensor input, Tensor(a!) out_qweight, Tensor(b!) out_scale) -> ()");
}

TORCH_LIBRARY_IMPL(esimd_ops, ESIMD_OPS_DISPATCH_KEY, m) {
  m.impl("esimd_rms_norm", drop_return<&esimd_ops::rms_norm>);
  m.impl("esimd_fused_add_rms_norm", drop_return<&esimd_ops::fused_add_rms_norm>);
  m.impl("esimd_fused_scaled_add_rms_norm", drop_return<&esimd_ops::fused_scaled_add_rms_norm>);
  m.impl("esimd_fused_add_rms_norm_batched", drop_return<&esimd_ops::fused_add_rms_norm_batched>);
  m.impl("esimd_rms_norm_gated", drop_return<&esimd_ops::rms_norm_gated>);
  m.impl("esimd_norm_add_norm", &esimd_ops::norm_add_norm);
  m.impl("esimd_accum_norm_add_norm", &esimd_ops::accum_norm_add_norm);

  m.impl("esimd_gemv_int4", drop_return<&esimd_ops::gemv_int4>);
  m.impl("esimd_gemv_int4_fused2", drop_return<&esimd_ops::gemv_int4_fused2>);
  m.impl("esimd_gemv_fp16", drop_return<&esimd_ops::gemv_fp16>);
  m.impl("esimd_gemv_fp16_gelu_mul", drop_return<&esimd_ops::gemv_fp16_gelu_mul>);

  m.impl("esimd_gemv_fp8_pern", drop_return<&esimd_ops::gemv_fp8_pern>);
  m.impl("esimd_gemv_fp8_pern_fused2", drop_return<&esimd_ops::gemv_fp8_pern_fused2>);
  m.impl("esimd_gemv_fp8_pern_fused3", drop_return<&esimd_ops::gemv_fp8_pern_fused3>);
  m.impl("esimd_gemv_fp8_pert", drop_return<&esimd_ops::gemv_fp8_pert>);
  m.impl("esimd_gemv_fp8_pert_fused2", drop_return<&esimd_ops::gemv_fp8_pert_fused2>);
  m.impl("esimd_gemv_fp8_pert_fused3", drop_return<&esimd_ops::gemv_fp8_pert_fused3>);
  m.impl("esimd_gemv_fp8_pert_bmg", drop_return<&esimd_ops::gemv_fp8_pert_bmg>);
  m.impl("esimd_gemv_fp8_blockscale_fused2", drop_return<&esimd_ops::gemv_fp8_blockscale_fused2>);
  m.impl("esimd_gemv_fp8_blockscale_fp16_fused2", drop_return<&esimd_ops::gemv_fp8_blockscale_fp16_fused2>);

  m.impl("esimd_resadd_norm_gemv_fp8_pert", drop_return<&esimd_ops::resadd_norm_gemv_fp8_pert>);
  m.impl("esimd_resadd_norm_gemv_int4_pert", drop_return<&esimd_ops::resadd_norm_gemv_int4_pert>);
  m.impl("esimd_resadd_norm_gemv2_fp8_pert", drop_return<&esimd_ops::resadd_norm_gemv2_fp8_pert>);
  m.impl("esimd_scaled_resadd_norm_gemv_fp8_pert", &esimd_ops::scaled_resadd_norm_gemv_fp8_pert);
  m.impl("esimd_norm_gemv_fp8_pert", drop_return<&esimd_ops::norm_gemv_fp8_pert>);
  m.impl("esimd_norm_gemv_int4_pert", drop_return<&esimd_ops::norm_gemv_int4_pert>);
  m.impl("esimd_norm_gemv_fp8_blockscale", drop_return<&esimd_ops::norm_gemv_fp8_blockscale>);
  m.impl("esimd_norm_gemv_norm_fp16", &esimd_ops::norm_gemv_norm_fp16);

  m.impl("esimd_gemm_int4_pgrp", drop_return<&esimd_ops::gemm_int4_pgrp>);
  m.impl("esimd_gemm_fp8_pert", drop_return<&esimd_ops::gemm_fp8_pert>);
  m.impl("esimd_gemm_fp8_blockscale", drop_return<&esimd_ops::gemm_fp8_blockscale>);

  m.impl("esimd_moe_topk", drop_return<&esimd_ops::moe_topk>);
  m.impl("topk_v2", drop_return<&esimd_ops::topk_v2>);
  m.impl("esimd_moe_scatter", drop_return<&esimd_ops::moe_scatter>);
  m.impl("esimd_moe_scatter_fused", drop_return<&esimd_ops::moe_scatter_fused>);
  m.impl("esimd_moe_gather", drop_return<&esimd_ops::moe_gather>);

  m.impl("esimd_moe_silu_mul", drop_return<&esimd_ops::moe_silu_mul>);
  m.impl("esimd_moe_gelu_tanh_mul", drop_return<&esimd_ops::moe_gelu_tanh_mul>);
  m.impl("esimd_moe_gemm_fp8", drop_return<&esimd_ops::moe_gemm_fp8>);
  m.impl("esimd_moe_gemm_fp8_pert", drop_return<&esimd_ops::moe_gemm_fp8_pert>);
  m.impl("esimd_moe_gemm_fp8_blockscale", drop_return<&esimd_ops::moe_gemm_fp8_blockscale>);

  m.impl("esimd_qkv_split_norm_rope", drop_return<&esimd_ops::qkv_split_norm_rope>);
  m.impl("esimd_qkv_split_norm_rope_v", drop_return<&esimd_ops::qkv_split_norm_rope_v>);

  m.impl("esimd_gdn_conv_fused", drop_return<&esimd_ops::gdn_conv_fused>);
  m.impl("esimd_gdn_conv_fused_seq", drop_return<&esimd_ops::gdn_conv_fused_seq>);
  m.impl("esimd_gdn_conv_fused_seq_spec", drop_return<&esimd_ops::gdn_conv_fused_seq_spec>);

  m.impl("q4_0_quantize", &esimd_ops::q4_0_quantize);
}
