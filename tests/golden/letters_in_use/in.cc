// A partial annotation keeps its letter; the new ones go round it. The return takes the letter of its argument.
#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_gemv_int4_fused2(Tensor input, Tensor w0, Tensor s0, Tensor o0, Tensor w1, Tensor s1, Tensor(a!) o1) -> Tensor", &f);
  m.def("esimd_moe_topk(Tensor router_logits, Tensor(a!) top_values, Tensor(b) top_indices, int T) -> Tensor", &g);
}
