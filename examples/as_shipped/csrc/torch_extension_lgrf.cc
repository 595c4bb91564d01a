// Registers the gated delta net operators, which the original builds with large register files.
#include "kernel_ops.h"

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  // one decoding step of the gated delta net, rows grouped by key head
  m.def("esimd_gdn_conv_fused(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, "
        "Tensor conv_bias, Tensor conv_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, "
        "Tensor(b!) ssm_state, Tensor ssm_state_indices, Tensor(c!) output, Tensor(d!) z_out, "
        "int N, int H, int HV, int K, int V, float scale) -> Tensor(c!)");
  m.impl("esimd_gdn_conv_fused", torch::kCPU, &esimd_ops::gdn_conv_fused);

  m.def("esimd_gdn_conv_fused_seq(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, "
        "Tensor conv_bias, Tensor conv_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, "
        "Tensor(b!) ssm_state, Tensor ssm_state_indices, Tensor(c!) output, Tensor(d!) z_out, "
        "int N, int H, int HV, int K, int V, float scale) -> Tensor(c!)");
  m.impl("esimd_gdn_conv_fused_seq", torch::kCPU, &esimd_ops::gdn_conv_fused_seq);

  // several tokens of each sequence, the state kept after every one
  m.def("esimd_gdn_conv_fused_seq_spec(Tensor qkvz, Tensor(a!) conv_state, Tensor conv_weight, "
        "Tensor conv_bias, Tensor spec_state_indices, Tensor A_log, Tensor dt_bias, Tensor ba, "
        "Tensor(b!) ssm_state, Tensor(c!) output, Tensor(d!) z_out, Tensor token_indx, "
        "Tensor num_accepted_tokens, int num_spec_decodes, int num_spec_tokens, int H, int HV, "
        "int K, int V, float scale) -> Tensor(c!)");
  m.impl("esimd_gdn_conv_fused_seq_spec", torch::kCPU, &esimd_ops::gdn_conv_fused_seq_spec);
}
