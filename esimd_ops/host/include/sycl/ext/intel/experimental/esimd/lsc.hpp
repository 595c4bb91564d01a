// LSC messages of one dimension: blocks, gathers and scatters of global and of shared local memory.
#pragma once
#include "common.hpp"

namespace sycl::ext::intel::experimental::esimd {

namespace ns = sycl::ext::intel::esimd;

template <class T, int N, lsc_data_size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none, class Hints = ns::properties<>, std::enable_if_t<ns::detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_block_load(const T* p, Hints = {}) { return ns::detail::load<T, N>(p); }
template <class T, int N, lsc_data_size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_block_load(const T* p, simd_mask<1> mask, simd<T, N> otherwise = {}) {
  if (!mask.at(0)) return otherwise;
  return ns::detail::load<T, N>(p);
}
template <class T, int N, lsc_data_size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none>
ESIMD_HOST_MEMORY inline void lsc_block_store(T* p, simd<T, N> values, simd_mask<1> mask = 1) {
  if (mask.at(0)) ns::detail::store<T, N>(p, values);
}

template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none, int N, class Offset>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask = 1) {
  simd<T, N * Each> made;
  ns::detail::gather_into<T, detail::stored_t<T, Size>, Each, N>(made, p, offsets, mask);
  return made;
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none, int N, class Offset>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask,
                                                      simd<T, N * Each> otherwise) {
  ns::detail::gather_into<T, detail::stored_t<T, Size>, Each, N>(otherwise, p, offsets, mask);
  return otherwise;
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none, int N, class Offset>
ESIMD_HOST_MEMORY inline void lsc_scatter(T* p, simd<Offset, N> offsets, simd<T, N * Each> values, simd_mask<N> mask = 1) {
  ns::detail::scatter_from<T, detail::stored_t<T, Size>, Each, N>(p, offsets, values, mask);
}

// A prefetch changes nothing that a kernel sees.
template <class T, int N = 1, lsc_data_size = lsc_data_size::default_size, cache_hint = cache_hint::none,
          cache_hint = cache_hint::none, class... Rest>
inline void lsc_prefetch(const T*, Rest...) {}

template <class T, int N, lsc_data_size = lsc_data_size::default_size>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_block_load(uint32_t offset) { return ns::detail::slm_load<T, N>(offset); }
template <class T, int N, lsc_data_size = lsc_data_size::default_size>
ESIMD_HOST_MEMORY inline void lsc_slm_block_store(uint32_t offset, simd<T, N> values) {
  ns::detail::slm_store<T, N>(offset, values);
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, int N>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_slm_gather(simd<uint32_t, N> offsets, simd_mask<N> mask = 1) {
  static_assert(sizeof(detail::stored_t<T, Size>) == sizeof(T), "esimd host: lsc_slm_gather of elements of their own size");
  simd<T, N * Each> made;
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    const simd<T, Each> lane = ns::detail::slm_load<T, Each>(offsets.at(i));
    for (int e = 0; e < Each; ++e) made.at(e * N + i) = lane.at(e);
  }
  return made;
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, int N>
ESIMD_HOST_MEMORY inline void lsc_slm_scatter(simd<uint32_t, N> offsets, simd<T, N * Each> values, simd_mask<N> mask = 1) {
  static_assert(sizeof(detail::stored_t<T, Size>) == sizeof(T), "esimd host: lsc_slm_scatter of elements of their own size");
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    simd<T, Each> lane;
    for (int e = 0; e < Each; ++e) lane.at(e) = values.at(e * N + i);
    ns::detail::slm_store<T, Each>(offsets.at(i), lane);
  }
}

}  // namespace sycl::ext::intel::experimental::esimd
