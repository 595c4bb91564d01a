// LSC messages of one dimension: blocks, gathers, scatters and atomic updates of global and of shared local memory. Lane i
// of a gather takes `Each` elements from its own address; element e of it is at e * lanes + i.
#pragma once
#include "common.hpp"

namespace sycl::ext::intel::experimental::esimd {

namespace ns = sycl::ext::intel::esimd;

#define ESIMD_HOST_LSC lsc_data_size Size = lsc_data_size::default_size, cache_hint = cache_hint::none, cache_hint = cache_hint::none
#define ESIMD_HOST_HINTS class Hints = ns::properties<>, std::enable_if_t<ns::detail::is_hint<Hints>, int> = 0

template <class T, int N, ESIMD_HOST_LSC, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_block_load(const T* p, Hints = {}) { return ns::detail::load<T, N>(p); }
template <class T, int N, ESIMD_HOST_LSC, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_block_load(const T* p, simd_mask<1> mask, simd<T, N> otherwise, Hints = {}) {
  if (!mask.at(0)) return otherwise;
  return ns::detail::load<T, N>(p);
}
template <class T, int N, ESIMD_HOST_LSC, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_block_load(const T* p, simd_mask<1> mask, Hints = {}) {
  return lsc_block_load<T, N>(p, mask, simd<T, N>());
}
template <class T, int N, ESIMD_HOST_LSC, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline void lsc_block_store(T* p, simd<T, N> values, simd_mask<1> mask, Hints = {}) {
  if (mask.at(0)) ns::detail::store<T, N>(p, values);
}
template <class T, int N, ESIMD_HOST_LSC, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline void lsc_block_store(T* p, simd<T, N> values, Hints = {}) { ns::detail::store<T, N>(p, values); }

// Offsets are a vector, a view of one, or one number for all lanes.
template <class T, int Each = 1, ESIMD_HOST_LSC, int N, class Offset>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask,
                                                      std::type_identity_t<simd<T, N * Each>> otherwise) {
  ns::detail::gather_into<T, detail::stored_t<T, Size>, Each, N>(otherwise, p, offsets, mask);
  return otherwise;
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N, class Offset>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask = 1) {
  return lsc_gather<T, Each, Size>(p, offsets, mask, simd<T, N * Each>());
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N, class Base, class Region, class... Rest>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, ns::simd_view<Base, Region> offsets, Rest... rest) {
  return lsc_gather<T, Each, Size>(p, simd<typename Region::element_type, N>(offsets), rest...);
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N = 1, class Offset, class... Rest,
          std::enable_if_t<std::is_integral_v<Offset>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_gather(const T* p, Offset offset, Rest... rest) {
  return lsc_gather<T, Each, Size>(p, simd<Offset, N>(offset), rest...);
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N, class Offset>
ESIMD_HOST_MEMORY inline void lsc_scatter(T* p, simd<Offset, N> offsets, simd<T, N * Each> values, simd_mask<N> mask = 1) {
  ns::detail::scatter_from<T, detail::stored_t<T, Size>, Each, N>(p, offsets, values, mask);
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N, class Base, class Region>
ESIMD_HOST_MEMORY inline void lsc_scatter(T* p, ns::simd_view<Base, Region> offsets, simd<T, N * Each> values,
                                          simd_mask<N> mask = 1) {
  lsc_scatter<T, Each, Size>(p, simd<typename Region::element_type, N>(offsets), values, mask);
}
template <class T, int Each = 1, ESIMD_HOST_LSC, int N = 1, class Offset, std::enable_if_t<std::is_integral_v<Offset>, int> = 0>
ESIMD_HOST_MEMORY inline void lsc_scatter(T* p, Offset offset, simd<T, N * Each> values, simd_mask<N> mask = 1) {
  lsc_scatter<T, Each, Size>(p, simd<Offset, N>(offset), values, mask);
}

// A prefetch changes nothing that a kernel sees.
template <class T, int Each = 1, ESIMD_HOST_LSC, class... Rest>
inline void lsc_prefetch(const T*, Rest...) {}
template <class T, int Each, lsc_data_size, cache_hint, cache_hint, int N, class... Rest>
inline void lsc_prefetch(const T*, Rest...) {}

template <class T, int N, lsc_data_size = lsc_data_size::default_size, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_block_load(uint32_t offset, Hints = {}) {
  return ns::detail::slm_load<T, N>(offset);
}
template <class T, int N, lsc_data_size = lsc_data_size::default_size, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_block_load(uint32_t offset, simd_mask<1> mask, simd<T, N> otherwise, Hints = {}) {
  if (!mask.at(0)) return otherwise;
  return ns::detail::slm_load<T, N>(offset);
}
template <class T, int N, lsc_data_size = lsc_data_size::default_size, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline void lsc_slm_block_store(uint32_t offset, simd<T, N> values, Hints = {}) {
  ns::detail::slm_store<T, N>(offset, values);
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, int N>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_slm_gather(simd<uint32_t, N> offsets, simd_mask<N> mask,
                                                          std::type_identity_t<simd<T, N * Each>> otherwise) {
  using Stored = detail::stored_t<T, Size>;
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    const simd<Stored, Each> lane = ns::detail::slm_load<Stored, Each>(offsets.at(i));
    for (int e = 0; e < Each; ++e) {
      const Stored value = lane.at(e);
      if constexpr (sizeof(Stored) == sizeof(T)) esimd_host::copy(&otherwise.at(e * N + i), &value, sizeof(T));
      else otherwise.at(e * N + i) = T(value);
    }
  }
  return otherwise;
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, int N>
ESIMD_HOST_MEMORY inline simd<T, N * Each> lsc_slm_gather(simd<uint32_t, N> offsets, simd_mask<N> mask = 1) {
  return lsc_slm_gather<T, Each, Size>(offsets, mask, simd<T, N * Each>());
}
template <class T, int Each = 1, lsc_data_size Size = lsc_data_size::default_size, int N>
ESIMD_HOST_MEMORY inline void lsc_slm_scatter(simd<uint32_t, N> offsets, simd<T, N * Each> values, simd_mask<N> mask = 1) {
  using Stored = detail::stored_t<T, Size>;
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    simd<Stored, Each> lane;
    for (int e = 0; e < Each; ++e) {
      const T value = values.at(e * N + i);
      if constexpr (sizeof(Stored) == sizeof(T)) esimd_host::copy(&lane.at(e), &value, sizeof(T));
      else lane.at(e) = Stored(value);
    }
    ns::detail::slm_store<Stored, Each>(offsets.at(i), lane);
  }
}

// As atomic_update, but of a compare-and-exchange the expected value comes first.
template <ns::atomic_op Op, class T, int N, ESIMD_HOST_LSC, class Offsets, std::enable_if_t<ns::detail::operand_count<Op>() == 0, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_atomic_update(T* p, Offsets offsets, simd_mask<N> mask = 1) {
  return ns::atomic_update<Op, T, N>(p, offsets, mask);
}
template <ns::atomic_op Op, class T, int N, ESIMD_HOST_LSC, class Offsets, std::enable_if_t<ns::detail::operand_count<Op>() == 1, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_atomic_update(T* p, Offsets offsets, simd<T, N> a, simd_mask<N> mask = 1) {
  return ns::atomic_update<Op, T, N>(p, offsets, a, mask);
}
template <ns::atomic_op Op, class T, int N, ESIMD_HOST_LSC, class Offsets, std::enable_if_t<ns::detail::operand_count<Op>() == 2, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_atomic_update(T* p, Offsets offsets, simd<T, N> expected, simd<T, N> put,
                                                      simd_mask<N> mask = 1) {
  return ns::atomic_update<Op, T, N>(p, offsets, put, expected, mask);
}
template <ns::atomic_op Op, class T, int N, lsc_data_size = lsc_data_size::default_size>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_atomic_update(simd<uint32_t, N> offsets, simd_mask<N> mask) {
  return ns::slm_atomic_update<Op, T, N>(offsets, mask);
}
template <ns::atomic_op Op, class T, int N, lsc_data_size = lsc_data_size::default_size>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_atomic_update(simd<uint32_t, N> offsets, simd<T, N> a, simd_mask<N> mask) {
  return ns::slm_atomic_update<Op, T, N>(offsets, a, mask);
}
template <ns::atomic_op Op, class T, int N, lsc_data_size = lsc_data_size::default_size>
ESIMD_HOST_MEMORY inline simd<T, N> lsc_slm_atomic_update(simd<uint32_t, N> offsets, simd<T, N> expected, simd<T, N> put,
                                                          simd_mask<N> mask) {
  return ns::slm_atomic_update<Op, T, N>(offsets, put, expected, mask);
}
#undef ESIMD_HOST_LSC
#undef ESIMD_HOST_HINTS

}  // namespace sycl::ext::intel::experimental::esimd
