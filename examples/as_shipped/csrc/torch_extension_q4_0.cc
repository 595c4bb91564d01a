// Registers the quantiser: schema here, implementation below.
#include "kernel_ops.h"

TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  m.def("q4_0_quantize(Tensor input, Tensor(a!) out_qweight, Tensor(b!) out_scale) -> ()");
}

TORCH_LIBRARY_IMPL(custom_esimd_kernels_vllm, CPU, m) {
  m.impl("q4_0_quantize", &esimd_ops::q4_0_quantize);
}
