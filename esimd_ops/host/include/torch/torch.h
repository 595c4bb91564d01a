// Operators need tensors, types and the registry, which the prelude brings; torch's own header adds its whole C++ frontend,
// which takes longer to compile than the kernels.
#include <torch/library.h>
#include <torch/types.h>
#include <torch/version.h>
