// Both branches of a conditional, tags and wrappers behind the schema, a selective schema.
#include <torch/library.h>
#ifdef USE_XPU
#include "xpu.h"
#endif
TORCH_LIBRARY_FRAGMENT_EXPAND(TORCH_EXTENSION_NAME, lib) {
#ifdef FAST
  lib.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor", {at::Tag::needs_fixed_stride_order});
#else
  lib.def(TORCH_SELECTIVE_SCHEMA("custom_esimd_kernels_vllm::esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor"));
#endif
}
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, XPU, lib) {
  lib.impl(TORCH_SELECTIVE_NAME("custom_esimd_kernels_vllm::esimd_rms_norm"), torch::dispatch(c10::DispatchKey::XPU, TORCH_FN(rms_norm)));
}
