// A macro that is literals alone is followed; what others build is reported, never guessed.
#include <torch/library.h>
#define RMS(NAME) \
  TORCH_LIBRARY(esimd_ops, m) { m.def(#NAME "(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor"); }
#define ARGS "Tensor input, Tensor output"
RMS(esimd_rms_norm)
TORCH_LIBRARY_FRAGMENT(esimd_ops, m) {
  m.def("esimd_rms_norm(" ARGS ", Tensor weight, float eps) -> Tensor");
  m.def(std::string("made_at_run_time") + "(Tensor x) -> ()");
}
