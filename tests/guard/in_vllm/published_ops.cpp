// Two operators of the table with their schemas as published, which do not say what they write, over plain ATen.

#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * at::rsqrt(x.square().mean(-1, true) + eps) * weight;
}

at::Tensor rms_norm(const at::Tensor& input, at::Tensor output, const at::Tensor& weight, double eps) {
  return output.copy_(normalised(input, weight, eps));
}

at::Tensor fused_add_rms_norm(at::Tensor hidden_states, at::Tensor residual, const at::Tensor& weight, double eps) {
  residual.add_(hidden_states);
  return hidden_states.copy_(normalised(residual, weight, eps));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", c10::kCPU, &rms_norm);
  m.def("esimd_fused_add_rms_norm(Tensor hidden_states, Tensor residual, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_fused_add_rms_norm", c10::kCPU, &fused_add_rms_norm);
}
