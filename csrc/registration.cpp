// Every operator's schema and implementation.
//
// An operator that writes its arguments says so and returns nothing: the form that torch.compile can trace. The host
// functions return the caller's buffer, as the originals do, and drop_return leaves it behind.
#include <torch/library.h>

#include "ops.h"
#include "schema_patch/drop_return.h"  // the wrapper that the patcher writes into other people's registrations

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
  m.def(
      "esimd_norm_gemv_norm_fp16(Tensor residual, Tensor scale_with_root, Tensor proj_w, Tensor pre_ff_w, "
      "Tensor(a!) router_logits, Tensor(b!) moe_input, float eps) -> ()");

  // gemm
  m.def("esimd_gemm_int4_pgrp(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
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
  m.impl("esimd_norm_gemv_norm_fp16", &esimd_ops::norm_gemv_norm_fp16);

  m.impl("esimd_gemm_int4_pgrp", drop_return<&esimd_ops::gemm_int4_pgrp>);
}
