// Registers the GEMV, norm and attention head operators.
#include "kernel_ops.h"

TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {
  // one fp16 scale for each row; N and K are trusted
  m.def("esimd_gemv_fp8_pern(Tensor input, Tensor weight, Tensor weight_scale, Tensor output, "
        "int N, int K) -> Tensor");
  m.impl("esimd_gemv_fp8_pern", torch::kCPU, &esimd_ops::gemv_fp8_pern);

  m.def("esimd_gemv_fp8_pern_fused2(Tensor input, Tensor w0, Tensor s0, Tensor o0, int N0, "
        "Tensor w1, Tensor s1, Tensor o1, int N1, int K) -> Tensor");
  m.impl("esimd_gemv_fp8_pern_fused2", torch::kCPU, &esimd_ops::gemv_fp8_pern_fused2);

  m.def("esimd_gemv_fp8_pern_fused3(Tensor input, Tensor w0, Tensor s0, Tensor o0, int N0, "
        "Tensor w1, Tensor s1, Tensor o1, int N1, Tensor w2, Tensor s2, Tensor o2, int N2, "
        "int K) -> Tensor");
  m.impl("esimd_gemv_fp8_pern_fused3", torch::kCPU, &esimd_ops::gemv_fp8_pern_fused3);

  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp16", torch::kCPU, &esimd_ops::gemv_fp16);

  m.def("esimd_gemv_fp16_gelu_mul(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp16_gelu_mul", torch::kCPU, &esimd_ops::gemv_fp16_gelu_mul);

  // one fp32 scale for the tensor; sizes come from the weight
  m.def("esimd_gemv_fp8_pert(Tensor input, Tensor weight, Tensor weight_scale, "
        "Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp8_pert", torch::kCPU, &esimd_ops::gemv_fp8_pert);

  m.def("esimd_gemv_fp8_pert_fused2(Tensor input, Tensor w0, Tensor s0, Tensor o0, Tensor w1, "
        "Tensor s1, Tensor o1) -> Tensor");
  m.impl("esimd_gemv_fp8_pert_fused2", torch::kCPU, &esimd_ops::gemv_fp8_pert_fused2);

  m.def("esimd_gemv_fp8_pert_fused3(Tensor input, Tensor w0, Tensor s0, Tensor o0, Tensor w1, "
        "Tensor s1, Tensor o1, Tensor w2, Tensor s2, Tensor o2) -> Tensor");
  m.impl("esimd_gemv_fp8_pert_fused3", torch::kCPU, &esimd_ops::gemv_fp8_pert_fused3);

  // int4 weights, one fp16 scale for 128 of them; sizes come from the weight
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, "
        "Tensor output) -> Tensor");
  m.impl("esimd_gemv_int4", torch::kCPU, &esimd_ops::gemv_int4);

  m.def("esimd_gemv_int4_fused2(Tensor input, Tensor w0, Tensor s0, Tensor o0, Tensor w1, "
        "Tensor s1, Tensor o1) -> Tensor");
  m.impl("esimd_gemv_int4_fused2", torch::kCPU, &esimd_ops::gemv_int4_fused2);

  // the lambda drops what the host function hands back
  m.def("esimd_qkv_split_norm_rope(Tensor qkv_state, Tensor(a!) q_out, Tensor(b!) gate_out, "
        "Tensor(c!) k_out, Tensor(d!) v_out, Tensor norm_wq, Tensor norm_wk, Tensor positions, "
        "int q_heads, int kv_heads, bool attn_output_gate, int rotary_dim, "
        "Tensor cos_sin_cache) -> ()");
  m.impl("esimd_qkv_split_norm_rope", torch::kCPU,
         [](at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
            at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor positions,
            int64_t q_heads, int64_t kv_heads, bool attn_output_gate, int64_t rotary_dim,
            at::Tensor cos_sin_cache) {
           esimd_ops::qkv_split_norm_rope(qkv_state, q_out, gate_out, k_out, v_out, norm_wq,
               norm_wk, positions, q_heads, kv_heads, attn_output_gate, rotary_dim, cos_sin_cache);
         });

  m.def("esimd_qkv_split_norm_rope_v(Tensor qkv_state, Tensor(a!) q_out, Tensor(b!) gate_out, "
        "Tensor(c!) k_out, Tensor(d!) v_out, Tensor norm_wq, Tensor norm_wk, Tensor norm_wv, "
        "Tensor positions, int q_heads, int kv_heads, bool attn_output_gate, int rotary_dim, "
        "Tensor cos_sin_cache) -> ()");
  m.impl("esimd_qkv_split_norm_rope_v", torch::kCPU,
         [](at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
            at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor norm_wv,
            at::Tensor positions, int64_t q_heads, int64_t kv_heads, bool attn_output_gate,
            int64_t rotary_dim, at::Tensor cos_sin_cache) {
           esimd_ops::qkv_split_norm_rope_v(qkv_state, q_out, gate_out, k_out, v_out, norm_wq,
               norm_wk, norm_wv, positions, q_heads, kv_heads, attn_output_gate, rotary_dim,
               cos_sin_cache);
         });

  // residual add, RMSNorm and GEMV in one pass
  m.def("esimd_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor residual, "
        "Tensor norm_weight, Tensor gemv_weight, Tensor gemv_scale, Tensor output, "
        "Tensor normed_out, float eps) -> Tensor");
  m.impl("esimd_resadd_norm_gemv_fp8_pert", torch::kCPU, &esimd_ops::resadd_norm_gemv_fp8_pert);

  m.def("esimd_resadd_norm_gemv2_fp8_pert(Tensor hidden_states, Tensor residual, "
        "Tensor norm_weight, Tensor w0, Tensor s0, Tensor o0, Tensor w1, Tensor s1, Tensor o1, "
        "float eps) -> Tensor");
  m.impl("esimd_resadd_norm_gemv2_fp8_pert", torch::kCPU,
         &esimd_ops::resadd_norm_gemv2_fp8_pert);

  // gated RMSNorm of each head, then the output projection
  m.def("esimd_norm_gemv_fp8_pert(Tensor x, Tensor z, Tensor norm_weight, Tensor gemv_weight, "
        "Tensor gemv_scale, Tensor output, int HV, int V, float eps) -> Tensor");
  m.impl("esimd_norm_gemv_fp8_pert", torch::kCPU, &esimd_ops::norm_gemv_fp8_pert);

  m.def("esimd_resadd_norm_gemv_int4_pert(Tensor hidden_states, Tensor residual, "
        "Tensor norm_weight, Tensor gemv_weight, Tensor gemv_scale, Tensor output, "
        "Tensor normed_out, float eps) -> Tensor");
  m.impl("esimd_resadd_norm_gemv_int4_pert", torch::kCPU,
         &esimd_ops::resadd_norm_gemv_int4_pert);

  m.def("esimd_norm_gemv_int4_pert(Tensor x, Tensor z, Tensor norm_weight, Tensor gemv_weight, "
        "Tensor gemv_scale, Tensor output, int HV, int V, float eps) -> Tensor");
  m.impl("esimd_norm_gemv_int4_pert", torch::kCPU, &esimd_ops::norm_gemv_int4_pert);

  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", torch::kCPU, &esimd_ops::rms_norm);

  /* hidden_states becomes the normalised sum,
     residual the sum */
  m.def("esimd_fused_add_rms_norm(Tensor hidden_states, Tensor residual, Tensor weight, "
        "float eps) -> Tensor");
  m.impl("esimd_fused_add_rms_norm", torch::kCPU, &esimd_ops::fused_add_rms_norm);

  m.def("esimd_fused_scaled_add_rms_norm(Tensor hidden_states, Tensor residual, Tensor weight, "
        "float eps, float scalar) -> Tensor");
  m.impl("esimd_fused_scaled_add_rms_norm", torch::kCPU, &esimd_ops::fused_scaled_add_rms_norm);

  m.def("esimd_rms_norm_gated(Tensor x, Tensor z, Tensor weight, Tensor output, "
        "float eps) -> Tensor");
  m.impl("esimd_rms_norm_gated", torch::kCPU, &esimd_ops::rms_norm_gated);

  m.def("esimd_fused_add_rms_norm_batched(Tensor hidden_states, Tensor residual, "
        "Tensor weight, float eps) -> Tensor");
  m.impl("esimd_fused_add_rms_norm_batched", torch::kCPU,
         &esimd_ops::fused_add_rms_norm_batched);

  // router: norm, fp16 GEMV and the input of the experts in one pass
  m.def("esimd_norm_gemv_norm_fp16(Tensor residual, Tensor scale_with_root, Tensor proj_w, "
        "Tensor pre_ff_w, Tensor router_logits, Tensor moe_input, float eps) -> ()");
  m.impl("esimd_norm_gemv_norm_fp16", torch::kCPU, &esimd_ops::norm_gemv_norm_fp16);

  m.def("esimd_scaled_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor residual, "
        "Tensor norm_weight, Tensor qkv_weight, Tensor qkv_scale, Tensor qkv_out, float eps, "
        "float scalar) -> ()");
  m.impl("esimd_scaled_resadd_norm_gemv_fp8_pert", torch::kCPU,
         &esimd_ops::scaled_resadd_norm_gemv_fp8_pert);

  m.def("esimd_norm_add_norm(Tensor h2_raw, Tensor h1, Tensor w1, Tensor w2, Tensor out, "
        "float eps1, float eps2) -> ()");
  m.impl("esimd_norm_add_norm", torch::kCPU, &esimd_ops::norm_add_norm);

  m.def("esimd_accum_norm_add_norm(Tensor routed_output, Tensor h1, Tensor w1, Tensor w2, "
        "Tensor out, int top_k, float eps1, float eps2) -> ()");
  m.impl("esimd_accum_norm_add_norm", torch::kCPU, &esimd_ops::accum_norm_add_norm);

  m.def("esimd_gemv_fp8_pert_bmg(Tensor input, Tensor weight, Tensor weight_scale, "
        "Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp8_pert_bmg", torch::kCPU, &esimd_ops::gemv_fp8_pert_bmg);
}
