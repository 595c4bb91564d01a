// Sums over the lanes of a sub-group.
#pragma once

#include "kernel.h"

// In lane i the sum over all lanes of values[i % kCount]; a power of two of them. Each round halves what is left, which
// is less work than one reduction after the other.
template <int kCount>
float transposed_sum(sycl::sub_group sub_group, int lane, float (&values)[kCount]) {
  static_assert(kSubGroupSize % kCount == 0);
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
    const bool upper = lane & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      // As values: of two elements the compiler would choose the address, and keep all of them in memory.
      const float low = values[i], high = values[i + half];
      const float keep = upper ? high : low;
      const float give = upper ? low : high;
      values[i] = keep + sycl::select_from_group(sub_group, give, lane ^ half);
    }
  }
#pragma unroll
  for (int distance = kCount; distance < kSubGroupSize; distance *= 2)
    values[0] += sycl::select_from_group(sub_group, values[0], lane ^ distance);
  return values[0];
}
