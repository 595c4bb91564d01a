// Operators of vectors, views and numbers, lane by lane. What is computed in is detail::computation_t.
#pragma once
#include "simd.hpp"

namespace sycl::ext::intel::esimd {

namespace detail {
template <class A, class B>
inline constexpr bool are_operands = (is_vector<A> && (is_vector<B> || is_element<B>)) || (is_element<A> && is_vector<B>);
template <class A, class B>
struct operands {
  static_assert(!is_vector<A> || !is_vector<B> || length_of<A> == length_of<B>, "simd: the sizes differ");
  static constexpr int length = is_vector<A> ? length_of<A> : length_of<B>;
  using type = computation_t<element_of<A>, element_of<B>>;
};
// A comparison of single elements is a truth value, not a mask of one lane.
template <class X>
inline constexpr bool is_single_view = false;
template <class T, int Stride>
inline constexpr bool is_single_view<simd_view<T, 1, Stride>> = true;
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
        made[i] = detail::element_cast<W>(detail::element(a, i)) OP detail::element_cast<W>(detail::element(b, i));    \
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

template <class T, int N, int Stride>
ESIMD_HOST_REGISTERS inline simd<T, N> operator-(const simd_view<T, N, Stride>& x) { return -x.read(); }
template <class T, int N, int Stride>
ESIMD_HOST_REGISTERS inline simd<T, N> operator~(const simd_view<T, N, Stride>& x) { return ~x.read(); }

template <class To, class From, int N>
ESIMD_HOST_REGISTERS inline simd<To, N> convert(const simd<From, N>& x) { return simd<To, N>(x); }
template <class To, class From, int N, int Stride>
ESIMD_HOST_REGISTERS inline simd<To, N> convert(const simd_view<From, N, Stride>& x) { return simd<To, N>(x); }

template <class T, int N>
ESIMD_HOST_REGISTERS inline simd<T, N> merge(simd<T, N> where_set, simd<T, N> elsewhere, simd_mask<N> mask) {
  elsewhere.merge(where_set, mask);
  return elsewhere;
}

}  // namespace sycl::ext::intel::esimd
