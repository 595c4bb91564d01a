// Nothing here is in the table: a same-named operator with other arguments, another namespace, an inferred schema.
#include <torch/library.h>
TORCH_LIBRARY(someone_else, m) {
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.def("inferred", &f);
}
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_rms_norm(Tensor x, Tensor y) -> Tensor");
  m.def("esimd_qkv_split_norm_rope_onyx(Tensor x, Tensor(a!) y) -> ()");
}
