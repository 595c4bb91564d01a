// Stands in for <sycl/ext/intel/experimental/esimd/memory.hpp>.
#pragma once
#include "lsc.hpp"
#include "lsc_2d.hpp"

namespace sycl::ext::intel::experimental::esimd {
using sycl::ext::intel::esimd::named_barrier_init;
using sycl::ext::intel::esimd::named_barrier_signal;
using sycl::ext::intel::esimd::named_barrier_wait;
}  // namespace sycl::ext::intel::experimental::esimd
