// Which types an element may have, how one becomes another, and in which type an operation computes: as documented for
// ESIMD, C++'s own promotions except that half and bfloat16 stay what they are.
#pragma once
#include <type_traits>

#include "../../../sycl.hpp"

#define __ESIMD_NS sycl::ext::intel::esimd
#define __ESIMD_ENS sycl::ext::intel::experimental::esimd

namespace sycl::ext::intel::esimd {

using half = sycl::half;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;

template <class T, int N>
class simd;
template <class T, int N, int Stride>
class simd_view;
template <int N>
class simd_mask;

namespace detail {

template <class T>
inline constexpr bool is_wrapper = std::is_same_v<T, sycl::half> || std::is_same_v<T, sycl::ext::oneapi::bfloat16>;
template <class T>
inline constexpr bool is_element = std::is_arithmetic_v<T> || is_wrapper<T>;
template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || is_wrapper<T>;

// What a wrapper is computed in before it is rounded.
template <class T>
using native_t = std::conditional_t<is_wrapper<T>, float, T>;

template <class A, class B>
using computation_t = std::conditional_t<
    !is_wrapper<A> && !is_wrapper<B>, decltype(std::declval<native_t<A>>() + std::declval<native_t<B>>()),
    std::conditional_t<std::is_same_v<A, B>, A,
                       std::conditional_t<is_floating<A> != is_floating<B>, std::conditional_t<is_floating<A>, A, B>,
                                          decltype(std::declval<native_t<A>>() + std::declval<native_t<B>>())>>>;

template <class To, class From>
ESIMD_HOST_REGISTERS constexpr To element_cast(From value) {
  if constexpr (std::is_same_v<To, From>) return value;
  else if constexpr (is_wrapper<From>) return static_cast<To>(static_cast<float>(value));
  else return static_cast<To>(value);
}

// Vectors and views of them, alike.
template <class X>
struct vector_traits {
  static constexpr bool is = false;
  static constexpr int length = 0;
  using element = X;
};
template <class T, int N>
struct vector_traits<simd<T, N>> {
  static constexpr bool is = true;
  static constexpr int length = N;
  using element = T;
};
template <class T, int N, int Stride>
struct vector_traits<simd_view<T, N, Stride>> : vector_traits<simd<T, N>> {};

template <class X>
inline constexpr bool is_vector = vector_traits<std::remove_cvref_t<X>>::is;
template <class X>
inline constexpr int length_of = vector_traits<std::remove_cvref_t<X>>::length;
template <class X>
using element_of = typename vector_traits<std::remove_cvref_t<X>>::element;

// Element i of a vector; of a number, the number.
template <class X>
ESIMD_HOST_REGISTERS constexpr auto element(const X& x, int i) {
  if constexpr (is_vector<X>) return x.at(i);
  else return x;
}

// Makes a vector whose every element is about to be written.
struct Raw {};

template <class...>
inline constexpr bool never = false;

}  // namespace detail
}  // namespace sycl::ext::intel::esimd
