// Reductions over one row of K elements by one work-group, or by one sub-group.
#pragma once

#include "kernel.h"

using Group = sycl::group<1>;

// Calls visit(k) once for each k < K. A work-item meets the same k in every walk over a row, so what it stores to
// element k in one walk it may read in the next without a barrier; nobody else touches that element.
template <typename Scope, typename Visit>
void for_each_element(Scope scope, int64_t K, Visit visit) {
  const auto sub_group = this_item().get_sub_group();
  const int64_t lane = sub_group.get_local_linear_id();
  int64_t first = 0;
  if constexpr (std::is_same_v<Scope, Group>) first = sub_group.get_group_linear_id() * kSubGroupSize;
  // Asked for each element, whether it is in the row costs more than the visit.
  for (; first + kSubGroupSize <= K; first += scope.get_local_linear_range()) visit(first + lane);
  if (first + lane < K) visit(first + lane);
}

// The same for a number of elements that leaves no rest: the visit is in the code once. Calls visit(first, lane) for
// element first + lane; `first` is the same in all lanes, and what follows from it alone.
template <int kCount, typename Visit>
void for_each_of(Group group, Visit visit) {
  static_assert(kCount % kSubGroupSize == 0);
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  for (int first = sub_group.get_group_linear_id() * kSubGroupSize; first < kCount;
       first += group.get_local_linear_range())
    visit(first, lane);
}

// 1 / sqrt(mean(value(k)^2) + eps), the same in every work-item. Calls value(k) once for each k.
template <typename Scope, typename Value>
float inverse_rms(Scope scope, int64_t K, float eps, Value value) {
  float sum = 0;
  for_each_element(scope, K, [&](int64_t k) {
    const float v = value(k);
    sum += v * v;
  });
  sum = sycl::reduce_over_group(scope, sum, sycl::plus<float>());
  return sycl::rsqrt(sum / static_cast<float>(K) + eps);
}
