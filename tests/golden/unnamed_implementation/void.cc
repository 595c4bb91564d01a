// With --returns void an operator whose implementation is not here is left alone, and said so.
#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor", make_boxed(&gemv));
}
