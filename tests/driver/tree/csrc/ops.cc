// One operator with a schema as published, which says nothing of what it writes, and one that is right.
#include <torch/library.h>

void twice(float* x, int64_t n);
void ask_torch();

static at::Tensor topk_v2(at::Tensor, at::Tensor values, at::Tensor, int64_t, int64_t, int64_t) { return values; }

static void double_it(at::Tensor x) {
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == at::kFloat, "expected contiguous floats");
  twice(x.mutable_data_ptr<float>(), x.numel());
}

TORCH_LIBRARY(esimd_topk_v2, m) {
  m.def("topk_v2(Tensor router_logits, Tensor top_values, Tensor top_indices, int T, "
        "int num_experts, int topk) -> Tensor");
  m.impl("topk_v2", c10::DispatchKey::CPU, &topk_v2);
}

TORCH_LIBRARY(small, m) {
  m.def("double_it(Tensor(a!) x) -> ()");
  m.impl("double_it", c10::DispatchKey::CPU, &double_it);
  m.def("of_torch() -> ()", &ask_torch);
}
