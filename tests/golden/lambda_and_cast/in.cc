// Implementations that are no plain names: a lambda, a cast out of an overload set, a template instance.
#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp16", torch::kCPU, [](at::Tensor x, at::Tensor w, at::Tensor o) { return gemv(x, w, o); });
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor output) -> Tensor");
  m.impl("esimd_gemv_int4", static_cast<at::Tensor (*)(at::Tensor, at::Tensor, at::Tensor, at::Tensor)>(&gemv));
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", &norm<float, 16>);
}
