// What kernels have in common whose accesses are ordered: fences, counters, rows.
#pragma once
#include "pieces.h"

inline constexpr auto kGpu = fence_scope::gpu;

inline void global_fence() { fence<memory_kind::global, fence_flush_op::none, kGpu>(); }
inline void local_fence() { fence<memory_kind::local, fence_flush_op::none, fence_scope::group>(); }
inline uint32_t* counter(float* out, int i = 0) { return reinterpret_cast<uint32_t*>(out + 960 + i); }
inline uint32_t count(uint32_t* p) {
  return atomic_update<atomic_op::inc, uint32_t, 1>(p, simd<uint32_t, 1>(0), simd_mask<1>(1))[0];
}
inline uint32_t look(uint32_t* p) {
  return atomic_update<atomic_op::load, uint32_t, 1>(p, simd<uint32_t, 1>(0), simd_mask<1>(1))[0];
}
inline uint32_t put(uint32_t* p, uint32_t value) {
  return atomic_update<atomic_op::xchg, uint32_t, 1>(p, simd<uint32_t, 1>(0), simd<uint32_t, 1>(value), simd_mask<1>(1))[0];
}
inline simd<float, 16> row(const float* p, int i) { return block_load<float, 16>(p + 16 * i); }
inline void set_row(float* p, int i, simd<float, 16> v) { block_store<float, 16>(p + 16 * i, v); }
inline void sum_rows(float* out, int rows) {
  simd<float, 16> sum = 0.0f;
  for (int i = 1; i <= rows; ++i) sum += row(out, i);
  set_row(out, 0, sum);
}
