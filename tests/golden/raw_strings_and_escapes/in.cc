// Raw literals with delimiters, escapes of every kind, a line splice, a u8 prefix.
#include <torch/library.h>
TORCH_LIBRARY(custom_esimd_kernels_sglang, m) {
  m.def(R"esimd(esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor)esimd", &f);
  m.def(u8"esimd_moe_silu_mul(Tensor input, Tensor \x6Futput, int N_gate_up, \
int N_half, int total_\162ows) -> Tensor", &g);
  m.def(R"(esimd_gemv_fp16(Tensor input, Tensor weight, Tensor)" R"( output) -> Tensor)", &h);
}
