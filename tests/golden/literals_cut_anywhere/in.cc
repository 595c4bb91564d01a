// A type in one literal and its name in the next, a comment between, the arrow alone, the return type cut off.
#include <torch/library.h>
TORCH_LIBRARY_FRAGMENT(custom_esimd_kernels_vllm, m) {
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor"
        /* Tensor output, not this one */
        " output) "  // -> Tensor
        "-"
        "> Ten"
        "sor");
  m.impl("esimd_gemv_int4", &esimd_gemv_int4);
}
