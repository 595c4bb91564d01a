// Stands in for <sycl/sycl.hpp>: what torch extensions with ESIMD kernels use of it. What is not here does not compile.
#pragma once
#include <cstdint>

// Attributes of the device compiler: the host's compiler has one target, and needs none of them.
#define SYCL_ESIMD_KERNEL
#define SYCL_ESIMD_FUNCTION
#define SYCL_EXTERNAL
#define ESIMD_INLINE inline
#define ESIMD_NOINLINE
#define ESIMD_PRIVATE
#ifndef _MSC_VER
#define __declspec(what)  // icpx takes Microsoft's words for what a library exports; here all is exported
#endif

#include "accessor.hpp"
#include "atomic_ref.hpp"
#include "builtins.hpp"
#include "device.hpp"
#include "ext/oneapi/bfloat16.hpp"
#include "ext/oneapi/group_local_memory.hpp"
#include "group_algorithm.hpp"
#include "half_type.hpp"
#include "memory_enums.hpp"
#include "multi_ptr.hpp"
#include "nd_item.hpp"
#include "queue.hpp"
#include "range.hpp"
#include "usm.hpp"
#include "vec.hpp"
