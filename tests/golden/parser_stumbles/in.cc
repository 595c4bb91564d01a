// Macros without semicolons and unbalanced conditionals throw the C++ parser off before and inside the block.
#include <torch/library.h>
DECLARE_THINGS(a, b) {{{ BEGIN_NAMESPACE
#if defined(A)
void f() {
#else
void g() {
#endif
TORCH_LIBRARY(esimd_ops, m) {
  REGISTER_FIRST
#if defined(A) && \
    defined(B)
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
#endif
  m.impl("esimd_rms_norm", &norm);
}
