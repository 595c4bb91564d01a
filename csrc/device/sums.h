// Exchanges between the lanes of a sub-group: sums over them, and a square turned over.
#pragma once

#include "kernel.h"

// In the lanes with this bit sums of `high` over pairs of lanes that differ in it, in the others those of `low`.
// As values: of two elements the compiler would choose the address, and keep all of them in memory.
inline float half_of_each(sycl::sub_group sub_group, int lane, int bit, float low, float high) {
  const bool upper = lane & bit;
  const float keep = upper ? high : low;
  const float give = upper ? low : high;
  return keep + sycl::select_from_group(sub_group, give, lane ^ bit);
}

// In lane i the sum over all lanes of values[i % kCount]; a power of two of them. Each round halves what is left, which
// is less work than one reduction after the other.
template <int kCount>
float transposed_sum(sycl::sub_group sub_group, int lane, float (&values)[kCount]) {
  static_assert(kSubGroupSize % kCount == 0);
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i)
      values[i] = half_of_each(sub_group, lane, half, values[i], values[i + half]);
  }
#pragma unroll
  for (int distance = kCount; distance < kSubGroupSize; distance *= 2)
    values[0] += sycl::select_from_group(sub_group, values[0], lane ^ distance);
  return values[0];
}

// Lane i of values[j] becomes lane j of values[i].
inline void transpose(sycl::sub_group sub_group, int lane, float (&values)[kSubGroupSize]) {
#pragma unroll
  for (int bit = 1; bit < kSubGroupSize; bit *= 2) {
    const bool upper = lane & bit;
#pragma unroll
    for (int i = 0; i < kSubGroupSize; ++i) {
      if (i & bit) continue;
      const float low = values[i], high = values[i | bit];
      const float got = sycl::select_from_group(sub_group, upper ? low : high, lane ^ bit);
      values[i] = upper ? got : low;
      values[i | bit] = upper ? high : got;
    }
  }
}
