// Included before each source that uses torch, in a tree that is built for the host: torch's headers as they are, then the
// names of the device mean the CPU, whose tensors the kernels run on.
#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/version.h>

#include <c10/xpu/XPUStream.h>
#include <sycl/ext/intel/esimd.hpp>
#include <sycl/ext/intel/esimd/xmx/dpas.hpp>
#include <sycl/ext/intel/experimental/esimd/memory.hpp>

#include "../torch/cpu_for_xpu.h"
