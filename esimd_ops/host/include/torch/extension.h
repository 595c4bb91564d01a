// For a module with bindings, torch's own, with the device's names as torch means them; else what operators need, which the
// prelude brings: the rest takes longer to compile than the kernels.
#ifdef ESIMD_HOST_PYBIND
#include "xpu_itself.h"
#include_next <torch/extension.h>
#include "cpu_for_xpu.h"
#else
#include <Python.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/version.h>
#endif
