// Reductions over one row of K elements by one work-group.
#pragma once

#include "kernel.h"

using Group = sycl::group<1>;

// Calls visit(k) once for each k < K. A work-item meets the same k in every walk over a row, so what it stores to
// element k in one walk it may read in the next without a barrier; nobody else touches that element.
template <typename Visit>
void for_each_element(Group group, int64_t K, Visit visit) {
  for (int64_t k = group.get_local_linear_id(); k < K; k += group.get_local_linear_range()) visit(k);
}

// 1 / sqrt(mean(value(k)^2) + eps), the same in every work-item. Calls value(k) once for each k.
template <typename Value>
float inverse_rms(Group group, int64_t K, float eps, Value value) {
  float sum = 0;
  for_each_element(group, K, [&](int64_t k) {
    const float v = value(k);
    sum += v * v;
  });
  sum = sycl::reduce_over_group(group, sum, sycl::plus<float>());
  return sycl::rsqrt(sum / static_cast<float>(K) + eps);
}
