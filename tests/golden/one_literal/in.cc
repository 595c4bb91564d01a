// The plainest form: one literal, an implementation beside it.
#include <torch/library.h>
at::Tensor f(at::Tensor input, at::Tensor output, at::Tensor weight, double eps);
TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", torch::kXPU, &f);
}
