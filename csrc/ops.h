// The host function of each operator. They check their arguments, launch kernels, and hand back the caller's own buffer
// where the original library does; what a schema says about it is the business of registration.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace esimd_ops {

// norm/norm.cpp
at::Tensor rms_norm(at::Tensor input, at::Tensor output, at::Tensor weight, double eps);
at::Tensor fused_add_rms_norm(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps);
at::Tensor fused_scaled_add_rms_norm(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps,
                                     double scalar);
at::Tensor fused_add_rms_norm_batched(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps);
at::Tensor rms_norm_gated(at::Tensor x, at::Tensor z, at::Tensor weight, at::Tensor output, double eps);
void norm_add_norm(at::Tensor h2_raw, at::Tensor h1, at::Tensor w1, at::Tensor w2, at::Tensor out, double eps1,
                   double eps2);
void accum_norm_add_norm(at::Tensor routed_output, at::Tensor h1, at::Tensor w1, at::Tensor w2, at::Tensor out,
                         int64_t top_k, double eps1, double eps2);

// gemv/gemv.cpp
at::Tensor gemv_int4(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemv_int4_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                            at::Tensor o1);
at::Tensor gemv_fp16(at::Tensor input, at::Tensor weight, at::Tensor output);
at::Tensor gemv_fp16_gelu_mul(at::Tensor input, at::Tensor weight, at::Tensor output);

// gemv/gemv_fp8.cpp
at::Tensor gemv_fp8_pern(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output, int64_t N,
                         int64_t K);
at::Tensor gemv_fp8_pern_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, int64_t N0,
                                at::Tensor w1, at::Tensor s1, at::Tensor o1, int64_t N1, int64_t K);
at::Tensor gemv_fp8_pern_fused3(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, int64_t N0,
                                at::Tensor w1, at::Tensor s1, at::Tensor o1, int64_t N1, at::Tensor w2, at::Tensor s2,
                                at::Tensor o2, int64_t N2, int64_t K);
at::Tensor gemv_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemv_fp8_pert_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                at::Tensor s1, at::Tensor o1);
at::Tensor gemv_fp8_pert_fused3(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                at::Tensor s1, at::Tensor o1, at::Tensor w2, at::Tensor s2, at::Tensor o2);
at::Tensor gemv_fp8_pert_bmg(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemv_fp8_blockscale_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                      at::Tensor s1, at::Tensor o1, int64_t block_n, int64_t block_k);
at::Tensor gemv_fp8_blockscale_fp16_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                           at::Tensor o1, int64_t block_n, int64_t block_k);

// gemv/norm_gemv.cpp
at::Tensor resadd_norm_gemv_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                     at::Tensor gemv_weight, at::Tensor gemv_scale, at::Tensor output,
                                     at::Tensor normed_out, double eps);
at::Tensor resadd_norm_gemv_int4_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor gemv_weight, at::Tensor gemv_scale, at::Tensor output,
                                      at::Tensor normed_out, double eps);
at::Tensor resadd_norm_gemv2_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                                      at::Tensor o1, double eps);
void scaled_resadd_norm_gemv_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor qkv_weight, at::Tensor qkv_scale, at::Tensor qkv_out, double eps,
                                      double scalar);
at::Tensor norm_gemv_fp8_pert(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                              at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps);
at::Tensor norm_gemv_int4_pert(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                               at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps);
at::Tensor norm_gemv_fp8_blockscale(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                                    at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps);
void norm_gemv_norm_fp16(at::Tensor residual, at::Tensor scale_with_root, at::Tensor proj_w, at::Tensor pre_ff_w,
                         at::Tensor router_logits, at::Tensor moe_input, double eps);

// gemm/gemm.cpp
at::Tensor gemm_int4_pgrp(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemm_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemm_fp8_blockscale(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output,
                               int64_t block_n, int64_t block_k);

// moe/route.cpp
at::Tensor moe_topk(at::Tensor router_logits, at::Tensor top_values, at::Tensor top_indices, int64_t T);
at::Tensor topk_v2(at::Tensor router_logits, at::Tensor top_values, at::Tensor top_indices, int64_t T,
                   int64_t num_experts, int64_t topk);
at::Tensor moe_scatter(at::Tensor hidden_states, at::Tensor router_top_value, at::Tensor sorted_token_ids,
                       at::Tensor scattered_hidden, at::Tensor scattered_weights, int64_t K, int64_t topk,
                       int64_t total_expanded);
at::Tensor moe_scatter_fused(at::Tensor hidden_states, at::Tensor top_values, at::Tensor top_indices,
                             at::Tensor scattered_hidden, at::Tensor scattered_weights, at::Tensor topk_ids,
                             at::Tensor expert_start, at::Tensor max_tokens_out, int64_t K, int64_t topk, int64_t T,
                             int64_t num_experts);
at::Tensor moe_gather(at::Tensor moe_output, at::Tensor topk_ids, at::Tensor scattered_weights, at::Tensor final_hidden,
                      int64_t K, int64_t topk, int64_t T);

// moe/moe.cpp
at::Tensor moe_silu_mul(at::Tensor input, at::Tensor output, int64_t N_gate_up, int64_t N_half, int64_t total_rows);
at::Tensor moe_gelu_tanh_mul(at::Tensor input, at::Tensor output, int64_t N_gate_up, int64_t N_half,
                             int64_t total_rows);
at::Tensor moe_gemm_fp8(at::Tensor input, at::Tensor weight, at::Tensor scale, at::Tensor output, at::Tensor expert_idx,
                        int64_t N, int64_t K, int64_t num_experts, int64_t max_tokens_per_expert);
at::Tensor moe_gemm_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor scale, at::Tensor output,
                             at::Tensor expert_idx, int64_t N, int64_t K, int64_t num_experts,
                             int64_t max_tokens_per_expert);
at::Tensor moe_gemm_fp8_blockscale(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output,
                                   at::Tensor expert_idx, int64_t N, int64_t K, int64_t num_experts, int64_t block_n,
                                   int64_t block_k);

// rope/rope.cpp
at::Tensor qkv_split_norm_rope(at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
                               at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor positions,
                               int64_t q_heads, int64_t kv_heads, bool attn_output_gate, int64_t rotary_dim,
                               at::Tensor cos_sin_cache);
at::Tensor qkv_split_norm_rope_v(at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
                                 at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor norm_wv,
                                 at::Tensor positions, int64_t q_heads, int64_t kv_heads, bool attn_output_gate,
                                 int64_t rotary_dim, at::Tensor cos_sin_cache);

// gdn/gdn.cpp
at::Tensor gdn_conv_fused(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                          at::Tensor conv_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                          at::Tensor ssm_state, at::Tensor ssm_state_indices, at::Tensor output, at::Tensor z_out,
                          int64_t N, int64_t H, int64_t HV, int64_t K, int64_t V, double scale);
at::Tensor gdn_conv_fused_seq(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                              at::Tensor conv_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                              at::Tensor ssm_state, at::Tensor ssm_state_indices, at::Tensor output, at::Tensor z_out,
                              int64_t N, int64_t H, int64_t HV, int64_t K, int64_t V, double scale);
at::Tensor gdn_conv_fused_seq_spec(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                                   at::Tensor spec_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                                   at::Tensor ssm_state, at::Tensor output, at::Tensor z_out, at::Tensor token_indx,
                                   at::Tensor num_accepted_tokens, int64_t num_spec_decodes, int64_t num_spec_tokens,
                                   int64_t H, int64_t HV, int64_t K, int64_t V, double scale);

// quant/quant.cpp
void q4_0_quantize(at::Tensor input, at::Tensor out_qweight, at::Tensor out_scale);

}  // namespace esimd_ops
