// pybind11's m.def takes a name and a doc string; the same file registers operators. Only the latter are schemas.
#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor", &f, "norm (in place) -> Tensor");
  m.def("gemv", &gemv, "esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
}
void register_more(torch::Library& library) {
  library.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)", &gemv);
}
