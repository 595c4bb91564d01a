// Blocks, gathers, scatters and prefetches of global memory. Cache hints and alignments are taken and change nothing.
#pragma once
#include "math.hpp"

namespace sycl::ext::intel::esimd {

namespace detail {

template <class T>
ESIMD_HOST_REGISTERS inline T* moved(T* p, int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<intptr_t>(p) + bytes);
}

template <class T, int N>
ESIMD_HOST_MEMORY inline simd<T, N> load(const T* p) {
  esimd_host::on_global(p, N * sizeof(T), esimd_host::Access::read);
  simd<T, N> made{Raw()};
  esimd_host::copy(made.storage(), p, N * sizeof(T));
  return made;
}
template <class T, int N>
ESIMD_HOST_MEMORY inline void store(T* p, const simd<T, N>& values) {
#ifdef ESIMD_HOST_CHECKS
  esimd_host::check_stored(p, values.storage(), N * sizeof(T), sizeof(T));
#else
  esimd_host::on_global(p, N * sizeof(T), esimd_host::Access::write);
#endif
  esimd_host::copy(p, values.storage(), N * sizeof(T));
}

// Lane i takes `Each` elements from its own address; element e of it is at e * lanes + i. `Stored` is what memory holds.
template <class T, class Stored, int Each, int Lanes, class Offset>
ESIMD_HOST_MEMORY inline void gather_into(simd<T, Lanes * Each>& made, const T* p, const simd<Offset, Lanes>& offsets,
                                          const simd_mask<Lanes>& mask) {
  for (int i = 0; i < Lanes; ++i) {
    if (!mask.at(i)) continue;
    const auto* from = reinterpret_cast<const Stored*>(moved(p, int64_t(offsets.at(i))));
    esimd_host::on_global(from, Each * sizeof(Stored), esimd_host::Access::read);
    for (int e = 0; e < Each; ++e) {
      Stored value;
      esimd_host::copy(&value, from + e, sizeof(Stored));
      if constexpr (sizeof(Stored) == sizeof(T)) esimd_host::copy(&made.at(e * Lanes + i), &value, sizeof(T));
      else made.at(e * Lanes + i) = T(value);
    }
  }
}
template <class T, class Stored, int Each, int Lanes, class Offset>
ESIMD_HOST_MEMORY inline void scatter_from(T* p, const simd<Offset, Lanes>& offsets, const simd<T, Lanes * Each>& values,
                                           const simd_mask<Lanes>& mask) {
  for (int i = 0; i < Lanes; ++i) {
    if (!mask.at(i)) continue;
    auto* to = reinterpret_cast<Stored*>(moved(p, int64_t(offsets.at(i))));
    for (int e = 0; e < Each; ++e) {
      Stored value;
      if constexpr (sizeof(Stored) == sizeof(T)) esimd_host::copy(&value, values.storage() + e * Lanes + i, sizeof(T));
      else value = Stored(values.at(e * Lanes + i));
#ifdef ESIMD_HOST_CHECKS
      esimd_host::check_stored(to + e, &value, sizeof(Stored), sizeof(Stored));
#else
      if (e == 0) esimd_host::on_global(to, Each * sizeof(Stored), esimd_host::Access::write);
#endif
      esimd_host::copy(to + e, &value, sizeof(Stored));
    }
  }
}

template <class X>
inline constexpr bool is_simd = false;
template <class T, int N>
inline constexpr bool is_simd<simd<T, N>> = true;
// A view of offsets, or one offset.
template <class X>
inline constexpr bool is_offsets = (is_vector<X> && !is_simd<X>) || std::is_integral_v<X>;

template <class X, int N>
ESIMD_HOST_REGISTERS inline auto as_vector(const X& x) {
  if constexpr (is_vector<X>) return simd<element_of<X>, length_of<X>>(x);
  else return simd<X, N>(x);
}

}  // namespace detail

// block_load(pointer [, byte offset] [, mask [, otherwise]] [, hints])
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> block_load(const T* p, Hints = {}) { return detail::load<T, N>(p); }
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> block_load(const T* p, size_t byte_offset, Hints = {}) {
  return detail::load<T, N>(detail::moved(p, int64_t(byte_offset)));
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> block_load(const T* p, simd_mask<1> mask, simd<T, N> otherwise, Hints = {}) {
  if (!mask.at(0)) return otherwise;
  return detail::load<T, N>(p);
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> block_load(const T* p, simd_mask<1> mask, Hints = {}) {
  return block_load<T, N>(p, mask, simd<T, N>());
}

template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void block_store(T* p, simd<T, N> values, Hints = {}) {
  detail::store<T, N>(p, values);
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void block_store(T* p, size_t byte_offset, simd<T, N> values, Hints = {}) {
  detail::store<T, N>(detail::moved(p, int64_t(byte_offset)), values);
}
template <class T, int N, class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void block_store(T* p, simd<T, N> values, simd_mask<1> mask, Hints = {}) {
  if (mask.at(0)) detail::store<T, N>(p, values);
}
template <class T, int N, class Base, class Region, class Hints = properties<>,
          std::enable_if_t<detail::is_hint<Hints>, int> = 0>
ESIMD_HOST_MEMORY inline void block_store(T* p, simd_view<Base, Region> values, Hints = {}) {
  detail::store<T, N>(p, simd<T, N>(values));
}

// gather: lane i takes `Each` elements from p + offsets[i] bytes. Offsets are a vector, a view of one, or one number.
#define ESIMD_HOST_HINTS class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0
template <class T, int N, int Each, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> gather(const T* p, simd<Offset, N / Each> offsets, simd_mask<N / Each> mask,
                                           std::type_identity_t<simd<T, N>> otherwise, Hints = {}) {
  detail::gather_into<T, T, Each, N / Each>(otherwise, p, offsets, mask);
  return otherwise;
}
template <class T, int N, int Each, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> gather(const T* p, simd<Offset, N / Each> offsets, simd_mask<N / Each> mask = 1, Hints = {}) {
  return gather<T, N, Each, Offset>(p, offsets, mask, simd<T, N>());
}
template <class T, int N, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask,
                                           std::type_identity_t<simd<T, N>> otherwise, Hints = {}) {
  return gather<T, N, 1, Offset>(p, offsets, mask, otherwise);
}
template <class T, int N, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline simd<T, N> gather(const T* p, simd<Offset, N> offsets, simd_mask<N> mask = 1, Hints = {}) {
  return gather<T, N, 1, Offset>(p, offsets, mask, simd<T, N>());
}
template <class T, int N, int Each = 1, class Offsets, class... Rest,
          std::enable_if_t<detail::is_offsets<Offsets>, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> gather(const T* p, Offsets offsets, Rest... rest) {
  return gather<T, N, Each>(p, detail::as_vector<Offsets, N / Each>(offsets), rest...);
}
template <class T, int N, int Each, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline void scatter(T* p, simd<Offset, N / Each> offsets, simd<T, N> values, simd_mask<N / Each> mask = 1,
                                      Hints = {}) {
  detail::scatter_from<T, T, Each, N / Each>(p, offsets, values, mask);
}
template <class T, int N, class Offset, ESIMD_HOST_HINTS>
ESIMD_HOST_MEMORY inline void scatter(T* p, simd<Offset, N> offsets, std::type_identity_t<simd<T, N>> values,
                                      simd_mask<N> mask = 1, Hints = {}) {
  scatter<T, N, 1, Offset>(p, offsets, values, mask);
}
template <class T, int N, int Each = 1, class Offsets, class... Rest,
          std::enable_if_t<detail::is_offsets<Offsets>, int> = 0>
ESIMD_HOST_MEMORY inline void scatter(T* p, Offsets offsets, simd<T, N> values, Rest... rest) {
  scatter<T, N, Each>(p, detail::as_vector<Offsets, N / Each>(offsets), values, rest...);
}
#undef ESIMD_HOST_HINTS
// A prefetch changes nothing that a kernel sees.
template <class T, int N = 1, class... Rest>
inline void prefetch(const T*, Rest...) {}

}  // namespace sycl::ext::intel::esimd
