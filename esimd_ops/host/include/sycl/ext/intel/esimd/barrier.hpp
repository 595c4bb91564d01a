// Barriers of a work-group, named ones, and fences. Memory of the host is in order: only the checks hear of a fence.
#pragma once
#include "types.hpp"

namespace sycl::ext::intel::esimd {

ESIMD_HOST_MEMORY inline void barrier(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  esimd_host::barrier(esimd_host::site(file, line));
}

enum fence_mask : uint8_t {
  global_coherent_fence = 1,
  l3_flush_instructions = 2,
  l3_flush_texture_data = 4,
  l3_flush_constant_data = 8,
  l3_flush_rw_data = 16,
  local_barrier = 32,
  sw_barrier = 128
};
enum class memory_kind : uint8_t { global = 0, image = 2, local = 3 };
enum class fence_flush_op : uint8_t { none, evict, invalidate, clean = 4 };
enum class fence_scope : uint8_t { group, local, tile, gpu, gpus, system, system_acquire };

template <uint8_t Mask>
inline void fence() {
  if constexpr (Mask != sw_barrier) esimd_host::fence(true, !(Mask & local_barrier));
}
template <memory_kind Kind = memory_kind::global, fence_flush_op = fence_flush_op::none, fence_scope Scope = fence_scope::group>
inline void fence() {
  if constexpr (Kind != memory_kind::image) {
    esimd_host::fence(Scope != fence_scope::group && Scope != fence_scope::local, Kind == memory_kind::global);
  }
}

template <uint8_t Count>
inline void named_barrier_init() { esimd_host::named_barrier_allocate(Count); }
// Mode 0: produces and consumes; 1: produces; 2: consumes.
template <bool = true>
inline void named_barrier_signal(uint8_t id, uint8_t mode, uint32_t producers, uint32_t consumers) {
  esimd_host::named_barrier_signal(id, mode != 2, mode != 1, producers, consumers);
}
ESIMD_HOST_MEMORY inline void named_barrier_wait(uint8_t id) { esimd_host::named_barrier_wait(id); }

}  // namespace sycl::ext::intel::esimd

// What the device's headers make of them; some sources call these.
inline void __esimd_nbarrier_init(uint8_t count) { esimd_host::named_barrier_allocate(count); }
inline void __esimd_nbarrier_arrive(uint8_t id, uint8_t mode, uint8_t producers, uint8_t consumers) {
  sycl::ext::intel::esimd::named_barrier_signal(id, mode, producers, consumers);
}
ESIMD_HOST_MEMORY inline void __esimd_nbarrier(uint8_t, uint8_t id, uint8_t) { esimd_host::named_barrier_wait(id); }
