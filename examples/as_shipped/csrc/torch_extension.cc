// Registers the GEMV and norm operators.
#include "kernel_ops.h"

TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {
  // int4 weights, one fp16 scale for 128 of them; sizes come from the weight
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, "
        "Tensor output) -> Tensor");
  m.impl("esimd_gemv_int4", torch::kCPU, &esimd_ops::gemv_int4);

  m.def("esimd_gemv_int4_fused2(Tensor input, "
        "Tensor w0, Tensor s0, Tensor o0, "
        "Tensor w1, Tensor s1, Tensor o1) -> Tensor");
  m.impl("esimd_gemv_int4_fused2", torch::kCPU, &esimd_ops::gemv_int4_fused2);

  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", torch::kCPU, &esimd_ops::rms_norm);

  /* hidden_states becomes the normalised sum,
     residual the sum */
  m.def("esimd_fused_add_rms_norm(Tensor hidden_states, Tensor residual, "
        "Tensor weight, float eps) -> Tensor");
  m.impl("esimd_fused_add_rms_norm", torch::kCPU, &esimd_ops::fused_add_rms_norm);

  m.def("esimd_fused_scaled_add_rms_norm(Tensor hidden_states, Tensor residual, "
        "Tensor weight, float eps, float scalar) -> Tensor");
  m.impl("esimd_fused_scaled_add_rms_norm", torch::kCPU,
         &esimd_ops::fused_scaled_add_rms_norm);

  m.def("esimd_rms_norm_gated(Tensor x, Tensor z, Tensor weight, "
        "Tensor output, float eps) -> Tensor");
  m.impl("esimd_rms_norm_gated", torch::kCPU, &esimd_ops::rms_norm_gated);

  m.def("esimd_fused_add_rms_norm_batched("  // every row of [rows, K]
        "Tensor hidden_states, Tensor residual, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_fused_add_rms_norm_batched", torch::kCPU,
         &esimd_ops::fused_add_rms_norm_batched);

  // router: norm, fp16 GEMV and the input of the experts in one pass
  m.def("esimd_norm_gemv_norm_fp16(Tensor residual, Tensor scale_with_root, "
        "Tensor proj_w, Tensor pre_ff_w, "
        "Tensor router_logits, Tensor moe_input, float eps) -> ()");
  m.impl("esimd_norm_gemv_norm_fp16", torch::kCPU, &esimd_ops::norm_gemv_norm_fp16);

  m.def("esimd_norm_add_norm(Tensor h2_raw, Tensor h1, Tensor w1, Tensor w2, Tensor out, "
        "float eps1, float eps2) -> ()");
  m.impl("esimd_norm_add_norm", torch::kCPU, &esimd_ops::norm_add_norm);

  m.def("esimd_accum_norm_add_norm(Tensor routed_output, Tensor h1, Tensor w1, Tensor w2, "
        "Tensor out, int top_k, float eps1, float eps2) -> ()");
  m.impl("esimd_accum_norm_add_norm", torch::kCPU, &esimd_ops::accum_norm_add_norm);
}
