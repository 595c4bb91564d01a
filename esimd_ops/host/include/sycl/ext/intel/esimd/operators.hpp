// Operators of vectors, views and numbers, lane by lane. What is computed in is detail::computation_t.
#pragma once
#include "simd.hpp"

namespace sycl::ext::intel::esimd {

namespace detail {
template <class A, class B>
inline constexpr bool are_operands = (is_vector<A> && (is_vector<B> || is_element<B>)) || (is_element<A> && is_vector<B>);
template <class A, class B>
inline constexpr bool are_masks = (is_mask<A> && (is_mask<B> || std::is_integral_v<B>)) ||
                                  (std::is_integral_v<A> && is_mask<B>);
template <class A, class B>
struct operands {
  static_assert(length_of<A> == length_of<B> || length_of<A> <= 1 || length_of<B> <= 1, "simd: the sizes differ");
  static constexpr int length = length_of<A> < length_of<B> ? length_of<B> : length_of<A>;
  using type = computation_t<element_of<A>, element_of<B>>;
};
// A comparison of single elements is a truth value, not a mask of one lane.
template <class X>
inline constexpr bool is_single_view = false;
template <class Base, class Region>
inline constexpr bool is_single_view<simd_view<Base, Region>> = Region::length == 1 && !Region::Is_2D;
template <class A, class B>
inline constexpr bool compares_singles = (is_single_view<A> && (is_single_view<B> || is_element<B>)) ||
                                         (is_element<A> && is_single_view<B>);
}  // namespace detail

#define ESIMD_HOST_BINARY(OP)                                                                                          \
  template <class A, class B, std::enable_if_t<detail::are_operands<A, B>, int> = 0>                                   \
  ESIMD_HOST_REGISTERS inline auto operator OP(const A& a, const B& b) {                                               \
    using C = typename detail::operands<A, B>::type;                                                                   \
    using W = detail::native_t<C>;                                                                                     \
    constexpr int N = detail::operands<A, B>::length;                                                                  \
    simd<C, N> made{detail::Raw()};                                                                                                   \
    for (int i = 0; i < N; ++i) {                                                                                      \
      made.at(i) = detail::element_cast<C>(                                                                            \
          W(detail::element_cast<W>(detail::element(a, i)) OP detail::element_cast<W>(detail::element(b, i))));        \
    }                                                                                                                  \
    return made;                                                                                                       \
  }
ESIMD_HOST_BINARY(+)
ESIMD_HOST_BINARY(-)
ESIMD_HOST_BINARY(*)
ESIMD_HOST_BINARY(/)
ESIMD_HOST_BINARY(%)
ESIMD_HOST_BINARY(&)
ESIMD_HOST_BINARY(|)
ESIMD_HOST_BINARY(^)
ESIMD_HOST_BINARY(<<)
ESIMD_HOST_BINARY(>>)
#undef ESIMD_HOST_BINARY

#define ESIMD_HOST_COMPARE(OP)                                                                                         \
  template <class A, class B, std::enable_if_t<detail::are_operands<A, B>, int> = 0>                                   \
  ESIMD_HOST_REGISTERS inline auto operator OP(const A& a, const B& b) {                                               \
    using W = detail::native_t<typename detail::operands<A, B>::type>;                                                 \
    constexpr int N = detail::operands<A, B>::length;                                                                  \
    if constexpr (detail::compares_singles<A, B>) {                                                                    \
      return detail::element_cast<W>(detail::element(a, 0)) OP detail::element_cast<W>(detail::element(b, 0));         \
    } else {                                                                                                           \
      simd_mask<N> made(0);                                                                                            \
      for (int i = 0; i < N; ++i) {                                                                                    \
        made.at(i) = detail::element_cast<W>(detail::element(a, i)) OP detail::element_cast<W>(detail::element(b, i));    \
      }                                                                                                                \
      return made;                                                                                                     \
    }                                                                                                                  \
  }
ESIMD_HOST_COMPARE(==)
ESIMD_HOST_COMPARE(!=)
ESIMD_HOST_COMPARE(<)
ESIMD_HOST_COMPARE(>)
ESIMD_HOST_COMPARE(<=)
ESIMD_HOST_COMPARE(>=)
#undef ESIMD_HOST_COMPARE

// Of masks: the words are joined; a comparison or a logical operator gives 0 or 1.
#define ESIMD_HOST_MASKS(OP, EXPRESSION)                                                                               \
  template <class A, class B, std::enable_if_t<detail::are_masks<A, B>, int> = 0>                                      \
  ESIMD_HOST_REGISTERS inline auto operator OP(const A& a, const B& b) {                                               \
    constexpr int N = detail::operands<A, B>::length;                                                                  \
    simd_mask<N> made(0);                                                                                              \
    for (int i = 0; i < N; ++i) {                                                                                      \
      const uint16_t x = uint16_t(detail::element(a, i)), y = uint16_t(detail::element(b, i));                         \
      made.at(i) = uint16_t(EXPRESSION);                                                                               \
    }                                                                                                                  \
    return made;                                                                                                       \
  }
ESIMD_HOST_MASKS(&, x & y)
ESIMD_HOST_MASKS(|, x | y)
ESIMD_HOST_MASKS(^, x ^ y)
ESIMD_HOST_MASKS(&&, x && y)
ESIMD_HOST_MASKS(||, x || y)
ESIMD_HOST_MASKS(==, x == y)
ESIMD_HOST_MASKS(!=, x != y)
#undef ESIMD_HOST_MASKS

template <class To, class From, int N>
ESIMD_HOST_REGISTERS inline simd<To, N> convert(const simd<From, N>& x) { return simd<To, N>(x); }
template <class To, class Base, class Region>
ESIMD_HOST_REGISTERS inline simd<To, Region::length> convert(const simd_view<Base, Region>& x) {
  return simd<To, Region::length>(x);
}

template <class A, class B, int N, std::enable_if_t<(detail::is_vector<A> || detail::is_mask<A>) && detail::length_of<A> == N, int> = 0>
ESIMD_HOST_REGISTERS inline auto merge(const A& where_set, const B& elsewhere, simd_mask<N> mask) {
  using Value = detail::like_t<decltype(where_set.read()), detail::element_of<A>, N>;
  Value made(elsewhere);
  made.merge(Value(where_set), mask);
  return made;
}

}  // namespace sycl::ext::intel::esimd
