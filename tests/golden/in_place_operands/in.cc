// Operands read and written in place count, and the return names the first of them.
#include <torch/library.h>
TORCH_LIBRARY_EXPAND(custom_esimd_kernels_vllm, ops) {
  ops.def("esimd_fused_add_rms_norm(Tensor hidden_states, Tensor residual, Tensor weight, float eps) -> Tensor",
          &esimd_fused_add_rms_norm);
  ops.def("esimd_norm_add_norm(Tensor h2_raw, Tensor h1, Tensor w1, Tensor w2, Tensor out, float eps1, float eps2) -> ()");
  ops.def("esimd_resadd_norm_gemv2_fp8_pert(Tensor hidden_states, Tensor residual, Tensor norm_weight, Tensor w0, Tensor s0, "
          "Tensor o0, Tensor w1, Tensor s1, Tensor o1, float eps) -> Tensor", TORCH_FN(ns::resadd<float>));
}
