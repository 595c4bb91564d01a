// One operator that runs a test kernel by its name.
#include <ATen/ATen.h>
#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include "pieces.h"

namespace {

void run(c10::string_view name, const at::Tensor& input, at::Tensor output) {
  const std::string text(name.data(), name.size());
  sycl::queue& queue = c10::xpu::getCurrentXPUStream(input.device().index()).queue();
  const float* in = input.data_ptr<float>();
  float* out = output.data_ptr<float>();
  for (auto* family : {run_register_piece, run_memory_piece, run_matrix_piece, run_shared_piece, run_defect}) {
    if (family(queue, text.c_str(), in, out)) return;
  }
  TORCH_CHECK(false, "no kernel is called ", text);
}

}  // namespace

TORCH_LIBRARY(esimd_pieces, m) {
  m.def("run(str name, Tensor input, Tensor(a!) output) -> ()");
  m.impl("run", torch::kXPU, &run);
}
