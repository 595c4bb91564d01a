// One operator in two namespaces: esimd_right and esimd_race. Written for XPU tensors, as such libraries are.
#include <ATen/ATen.h>
#include <c10/xpu/XPUStream.h>
#include <torch/library.h>

#include "gemv.h"

namespace {

template <void (*Launch)(sycl::queue&, Arguments)>
void resadd_norm_gemv(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight, at::Tensor gemv_weight,
                      at::Tensor gemv_scale, at::Tensor output, at::Tensor normed_out, double eps) {
  TORCH_CHECK(hidden_states.device().is_xpu(), "hidden_states must be an XPU tensor");
  TORCH_CHECK(gemv_weight.size(1) % kChunk == 0, "K must be a multiple of ", kChunk, ", found ", gemv_weight.size(1));
  auto half = [](const at::Tensor& tensor) { return reinterpret_cast<fp16*>(tensor.data_ptr()); };
  const Arguments arguments{half(hidden_states),
                            half(residual),
                            half(norm_weight),
                            static_cast<const uint8_t*>(gemv_weight.data_ptr()),
                            gemv_scale.data_ptr<float>(),
                            half(output),
                            half(normed_out),
                            static_cast<int>(gemv_weight.size(0)),
                            static_cast<int>(gemv_weight.size(1)),
                            static_cast<float>(eps),
                            gemv_weight.scalar_type() == at::ScalarType::Float8_e5m2};
  Launch(c10::xpu::getCurrentXPUStream(hidden_states.device().index()).queue(), arguments);
}

constexpr const char* kSchema =
    "esimd_resadd_norm_gemv_fp8_pert(Tensor hidden_states, Tensor(a!) residual, Tensor norm_weight, Tensor gemv_weight, "
    "Tensor gemv_scale, Tensor(b!) output, Tensor(c!) normed_out, float eps) -> ()";

}  // namespace

TORCH_LIBRARY(esimd_right, m) {
  m.def(kSchema);
  m.impl("esimd_resadd_norm_gemv_fp8_pert", torch::kXPU, &resadd_norm_gemv<&resadd_norm_gemv_right>);
}

TORCH_LIBRARY(esimd_race, m) {
  m.def(kSchema);
  m.impl("esimd_resadd_norm_gemv_fp8_pert", torch::kXPU, &resadd_norm_gemv<&resadd_norm_gemv_race>);
}
