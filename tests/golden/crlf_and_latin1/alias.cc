// CRLF line ends, tabs, Latin-1 bytes (é) and no final newline survive.
#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
	m.def("esimd_rms_norm(Tensor input, Tensor(a!) output,"
	      " Tensor weight, float eps) -> Tensor(a!)");	// ü
	m.impl("esimd_rms_norm", &norm);
}