// Shared local memory of a work-group, by byte offset.
#pragma once
#include "memory.hpp"

namespace sycl::ext::intel::esimd {

namespace detail {
// What is out of bounds is told, reads as poison and is not written.
template <class T, int N>
ESIMD_HOST_MEMORY inline simd<T, N> slm_load(uint32_t offset) {
  simd<T, N> made;
  if (const char* from = esimd_host::on_slm(offset, N * sizeof(T), esimd_host::Access::read)) {
    esimd_host::copy(made.storage(), from, N * sizeof(T));
  }
  return made;
}
template <class T, int N>
ESIMD_HOST_MEMORY inline void slm_store(uint32_t offset, const simd<T, N>& values) {
  if (char* to = esimd_host::on_slm(offset, N * sizeof(T), esimd_host::Access::write)) {
    esimd_host::copy(to, values.storage(), N * sizeof(T));
  }
}
}  // namespace detail

template <uint32_t Bytes>
inline void slm_init() { esimd_host::slm_init(Bytes); }
inline void slm_init(uint32_t bytes) { esimd_host::slm_init(bytes); }

template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> slm_block_load(uint32_t offset, Hints = {}) { return detail::slm_load<T, N>(offset); }
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> slm_block_load(uint32_t offset, simd_mask<1> mask, simd<T, N> otherwise, Hints = {}) {
  if (!mask.at(0)) return otherwise;
  return detail::slm_load<T, N>(offset);
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void slm_block_store(uint32_t offset, simd<T, N> values, Hints = {}) {
  detail::slm_store<T, N>(offset, values);
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void slm_block_store(uint32_t offset, simd<T, N> values, simd_mask<1> mask,
                                              Hints = {}) {
  if (mask.at(0)) detail::slm_store<T, N>(offset, values);
}
template <class T>
ESIMD_HOST_MEMORY inline T slm_scalar_load(uint32_t offset) { return detail::slm_load<T, 1>(offset).at(0); }
template <class T>
ESIMD_HOST_MEMORY inline void slm_scalar_store(uint32_t offset, T value) { detail::slm_store<T, 1>(offset, simd<T, 1>(value)); }

template <class T, int N>
ESIMD_HOST_MEMORY inline simd<T, N> slm_gather(simd<uint32_t, N> offsets, simd_mask<N> mask = 1) {
  simd<T, N> made;
  for (int i = 0; i < N; ++i) {
    if (mask.at(i)) made.at(i) = detail::slm_load<T, 1>(offsets.at(i)).at(0);
  }
  return made;
}
template <class T, int N>
ESIMD_HOST_MEMORY inline void slm_scatter(simd<uint32_t, N> offsets, simd<T, N> values, simd_mask<N> mask = 1) {
  for (int i = 0; i < N; ++i) {
    if (mask.at(i)) detail::slm_store<T, 1>(offsets.at(i), simd<T, 1>(values.at(i)));
  }
}

}  // namespace sycl::ext::intel::esimd
