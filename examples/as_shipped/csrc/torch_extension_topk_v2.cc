// Registers the second top-k, in a namespace of its own.
#include "kernel_ops.h"

TORCH_LIBRARY(esimd_topk_v2, m) {
  m.def("topk_v2(Tensor router_logits, Tensor top_values, Tensor top_indices, int T, "
        "int num_experts, int topk) -> Tensor");
  m.impl("topk_v2", torch::kCPU, &esimd_ops::topk_v2);
}
