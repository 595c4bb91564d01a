// Stands in for <sycl/ext/intel/experimental/esimd/memory.hpp>.
#pragma once
#include "lsc.hpp"
#include "lsc_2d.hpp"

namespace sycl::ext::intel::experimental::esimd {
enum class lsc_fence_op : uint8_t { none, evict, invalidate, discard, clean, flushl3 };
enum class lsc_scope : uint8_t { group, local, tile, gpu, gpus, system, sysacq };
enum class lsc_memory_kind : uint8_t { untyped_global, untyped_global_low_pri, typed_global, shared_local };

// The older name of esimd::fence.
template <lsc_memory_kind Kind = lsc_memory_kind::untyped_global, lsc_fence_op = lsc_fence_op::none,
          lsc_scope Scope = lsc_scope::group, int N = 16>
ESIMD_HOST_MEMORY inline void lsc_fence(simd_mask<N> = 1) {
  esimd_host::fence(Scope >= lsc_scope::tile, Kind != lsc_memory_kind::shared_local);
}
using sycl::ext::intel::esimd::named_barrier_init;
using sycl::ext::intel::esimd::named_barrier_signal;
using sycl::ext::intel::esimd::named_barrier_wait;
}  // namespace sycl::ext::intel::experimental::esimd
