// One operator that runs a test kernel by its name.
#include <ATen/ATen.h>
#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include "pieces.h"

namespace {

void run(c10::string_view name, const at::Tensor& input, at::Tensor output) {
  std::string text(name.data(), name.size());
  at::Tensor source = input;  // or a temporary: "empty:blocks" runs blocks on one that nobody has written
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    source = text.substr(0, colon) == "empty" ? at::empty_like(input) : at::zeros_like(input);
    text = text.substr(colon + 1);
  }
  sycl::queue& queue = c10::xpu::getCurrentXPUStream(input.device().index()).queue();
  const float* in = source.data_ptr<float>();
  float* out = output.data_ptr<float>();
  for (auto* family : {run_register_piece, run_memory_piece, run_matrix_piece, run_shared_piece, run_defect,
                       run_order, run_order_of_items, run_value}) {
    if (family(queue, text.c_str(), in, out)) return;
  }
  TORCH_CHECK(false, "no kernel is called ", text);
}

}  // namespace

TORCH_LIBRARY(esimd_pieces, m) {
  m.def("run(str name, Tensor input, Tensor(a!) output) -> ()");
  m.impl("run", torch::kXPU, &run);
}
