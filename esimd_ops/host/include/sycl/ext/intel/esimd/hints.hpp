// Cache hints, alignments and the property lists that hold them: taken everywhere, and they change nothing that a kernel
// sees.
#pragma once
#include "types.hpp"

namespace sycl::ext::intel::esimd {

enum class cache_hint { none, uncached, cached, write_back, write_through, streaming, read_invalidate, const_cached };
enum class cache_level { L1 = 1, L2 = 2, L3 = 3 };
struct element_aligned_tag {
  template <class X, class T = detail::element_of<X>>
  static constexpr unsigned alignment = alignof(T);
};
struct vector_aligned_tag {
  template <class X>
  static constexpr unsigned alignment = detail::getNextPowerOf2<int(sizeof(X))>();
};
template <unsigned Bytes>
struct overaligned_tag {
  template <class>
  static constexpr unsigned alignment = Bytes;
};
inline constexpr element_aligned_tag element_aligned{};
inline constexpr vector_aligned_tag vector_aligned{};
template <unsigned Bytes>
inline constexpr overaligned_tag<Bytes> overaligned{};

template <int>
struct alignment_key {};
template <int Bytes>
inline constexpr alignment_key<Bytes> alignment{};
template <cache_hint>
struct cache_hint_key {};
template <cache_hint Hint>
inline constexpr cache_hint_key<Hint> cache_hint_L1{};
template <cache_hint Hint>
inline constexpr cache_hint_key<Hint> cache_hint_L2{};
template <cache_hint Hint>
inline constexpr cache_hint_key<Hint> cache_hint_L3{};
template <class... Keys>
struct properties {
  constexpr properties(Keys...) {}
};
template <class... Keys>
properties(Keys...) -> properties<Keys...>;

namespace detail {
template <class X>
inline constexpr bool is_hint = false;
template <class... Keys>
inline constexpr bool is_hint<properties<Keys...>> = true;
template <>
inline constexpr bool is_hint<element_aligned_tag> = true;
template <>
inline constexpr bool is_hint<vector_aligned_tag> = true;
template <unsigned Bytes>
inline constexpr bool is_hint<overaligned_tag<Bytes>> = true;
}  // namespace detail

}  // namespace sycl::ext::intel::esimd
