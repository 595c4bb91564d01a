// Reductions over one row of K elements by one work-group, or by one sub-group.
#pragma once

#include "kernel.h"

using Group = sycl::group<1>;

// Neighbouring elements of one lane, in fp32. Several are loaded at once, from an address that is a multiple of their
// size: on a card one message then brings what all lanes want, 256 bytes of 8 halves each. A CPU loads those of
// neighbouring lanes at once, and wants one each.
template <int kEach>
using Floats = sycl::marray<float, kEach>;

template <int kEach, typename T>
Floats<kEach> load(const T* from) {
  const auto packed = *reinterpret_cast<const sycl::vec<T, kEach>*>(from);
  Floats<kEach> values;
#pragma unroll
  for (int e = 0; e < kEach; ++e) values[e] = float(packed[e]);
  return values;
}

template <typename T, size_t kEach>
void store(T* to, const sycl::marray<float, kEach>& values) {
  sycl::vec<T, kEach> packed;
#pragma unroll
  for (size_t e = 0; e < kEach; ++e) packed[e] = T(values[e]);
  *reinterpret_cast<sycl::vec<T, kEach>*>(to) = packed;
}

// Calls visit(k) once for each kEach elements from k on, a divisor of K. A work-item meets the same k in every walk
// over a row, so what it stores to element k in one walk it may read in the next without a barrier; nobody else touches
// that element.
template <int kEach = 1, typename Scope, typename Visit>
void for_each_element(Scope scope, int64_t K, Visit visit) {
  constexpr int kWidth = kEach * kSubGroupSize;
  const auto sub_group = this_item().get_sub_group();
  const int64_t mine = kEach * sub_group.get_local_linear_id();
  int64_t first = 0;
  if constexpr (std::is_same_v<Scope, Group>) first = sub_group.get_group_linear_id() * kWidth;
  // Asked for each element, whether it is in the row costs more than the visit.
  for (; first + kWidth <= K; first += kEach * scope.get_local_linear_range()) visit(first + mine);
  if (first + mine < K) visit(first + mine);
}

// The same for a number of elements that leaves no rest: the visit is in the code once. Calls visit(first, mine) for
// the elements from first + mine on; `first` is the same in all lanes, and what follows from it alone.
template <int kCount, int kEach, typename Visit>
void for_each_of(Group group, Visit visit) {
  static_assert(kCount % (kEach * kSubGroupSize) == 0);
  const auto sub_group = this_item().get_sub_group();
  const int mine = kEach * sub_group.get_local_linear_id();
  for (int first = sub_group.get_group_linear_id() * kEach * kSubGroupSize; first < kCount;
       first += kEach * group.get_local_linear_range())
    visit(first, mine);
}

// 1 / sqrt(mean(value(k)^2) + eps), the same in every work-item. Calls value(k) once for each kEach elements from k on.
template <int kEach, typename Scope, typename Value>
float inverse_rms(Scope scope, int64_t K, float eps, Value value) {
  float sum = 0;
  for_each_element<kEach>(scope, K, [&](int64_t k) {
    const Floats<kEach> v = value(k);
#pragma unroll
    for (int e = 0; e < kEach; ++e) sum += v[e] * v[e];
  });
  sum = sycl::reduce_over_group(scope, sum, sycl::plus<float>());
  return sycl::rsqrt(sum / static_cast<float>(K) + eps);
}
