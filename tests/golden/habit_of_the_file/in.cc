// This file spells a write `Tensor!`; so do we, except where a return must name its alias set.
#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
  m.def("mine(Tensor! x) -> ()");
  m.def("other(Tensor x, Tensor! y) -> ()");
  m.def("esimd_scaled_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor residual, Tensor norm_weight, Tensor qkv_weight, "
        "Tensor qkv_scale, Tensor qkv_out, float eps, float scalar) -> ()");
  m.def("esimd_gemv_int4_fused2(Tensor input, Tensor w0, Tensor s0, Tensor! o0, Tensor w1, Tensor s1, Tensor o1) -> Tensor", &f);
}
