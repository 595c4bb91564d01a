// The host functions these files register. They live in the esimd_ops extension, which this library links to.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>

// torch/types.h has this name too, and takes longer to compile than all the rest.
namespace torch {
using c10::kCPU;
}

namespace esimd_ops {

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

at::Tensor gemv_int4(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);
at::Tensor gemv_int4_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                            at::Tensor o1);
void norm_gemv_norm_fp16(at::Tensor residual, at::Tensor scale_with_root, at::Tensor proj_w, at::Tensor pre_ff_w,
                         at::Tensor router_logits, at::Tensor moe_input, double eps);

at::Tensor gemm_int4_pgrp(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output);

}  // namespace esimd_ops
