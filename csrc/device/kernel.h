// What every kernel shares: how it is declared, and its place in the launch.
#pragma once

#include <sycl/sycl.hpp>

#include "tile.h"

namespace syclex = sycl::ext::oneapi::experimental;

using namespace esimd_ops;
using sycl::half;

// What decides on loops, branches and addresses is chosen value by value with the language's own operators. What
// sycl::min returns, or a chosen struct, is to the compiler of the CPU device no longer the same in all lanes: loads of
// neighbours become gathers and branches masks, and a kernel ten times slower.
//
// Every kernel is a template: a plain function would be compiled again with each other kernel of its file.
// The size comes first: placed after nd_range_kernel it is ignored without a word.
#define KERNEL                                                               \
  SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::sub_group_size<kSubGroupSize>)) \
  SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>)) void

// Lists a kernel for the ahead-of-time build, which must see every instance; the run-time build is asked by name.
#ifdef ESIMD_OPS_AHEAD_OF_TIME
#include "aot.h"
#define AHEAD_OF_TIME(name, ...) ESIMD_OPS_AOT_KERNEL(name, __VA_ARGS__)
#else
#define AHEAD_OF_TIME(name, ...)
#endif

inline sycl::nd_item<1> this_item() { return sycl::ext::oneapi::this_work_item::get_nd_item<1>(); }
