// Which types an element may have, how one becomes another, and in which type an operation computes: as documented for
// ESIMD, C++'s own promotions except that half and bfloat16 stay what they are.
#pragma once
#include <functional>
#include <iterator>
#include <type_traits>

#include "../../../sycl.hpp"
#include "../experimental/esimd/tfloat32.hpp"

#define __ESIMD_NS sycl::ext::intel::esimd
#define __ESIMD_DNS sycl::ext::intel::esimd::detail
#define __ESIMD_ENS sycl::ext::intel::experimental::esimd

namespace sycl {
namespace _V1 = ::sycl;  // the version of the compiler's headers
}
namespace sycl::ext::intel::esimd {

using half = sycl::half;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;

template <class T, int N>
class simd;
template <int N>
class simd_mask;

// What a view sees: SizeY rows, StrideY elements apart, of SizeX elements, StrideX apart.
template <bool Is2D, class T, int SizeY, int StrideY, int SizeX, int StrideX>
struct region_base {
  using element_type = T;
  static constexpr bool Is_2D = Is2D;
  static constexpr int Size_x = SizeX, Stride_x = StrideX, Size_y = SizeY, Stride_y = StrideY;
  static constexpr int length = SizeX * SizeY;
};
template <class T, int Size, int Stride>
using region1d_t = region_base<false, T, 1, 1, Size, Stride>;
template <class T>
using region1d_scalar_t = region1d_t<T, 1, 1>;
template <class T, int SizeY, int StrideY, int SizeX, int StrideX>
using region2d_t = region_base<true, T, SizeY, StrideY, SizeX, StrideX>;

template <class Base, class Region = region1d_t<typename Base::element_type, Base::length, 1>>
class simd_view;

namespace detail {

template <class T>
inline constexpr bool is_wrapper = std::is_same_v<T, sycl::half> || std::is_same_v<T, sycl::ext::oneapi::bfloat16> ||
                                   std::is_same_v<T, sycl::ext::intel::experimental::esimd::tfloat32>;
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

// What sources call the two.
template <class T>
using __raw_t = std::conditional_t<std::is_same_v<T, sycl::half>, _Float16, std::conditional_t<is_wrapper<T>, uint16_t, T>>;
template <class A, class B>
using computation_type_t = computation_t<A, B>;
template <int Bytes>
using uint_type_t = std::conditional_t<
    Bytes == 1, uint8_t, std::conditional_t<Bytes == 2, uint16_t, std::conditional_t<Bytes == 4, uint32_t, uint64_t>>>;
template <int Value, int Of>
constexpr int roundUpNextMultiple() { return (Value + Of - 1) / Of * Of; }
template <int Value>
constexpr int getNextPowerOf2() {
  int power = 1;
  while (power < Value) power *= 2;
  return power;
}

template <class To, class From>
ESIMD_HOST_REGISTERS constexpr To element_cast(From value) {
  if constexpr (std::is_same_v<To, From>) return value;
  else if constexpr (is_wrapper<From>) return static_cast<To>(static_cast<float>(value));
  else return static_cast<To>(value);
}

// Vectors, masks and views of them, alike.
template <class X>
struct vector_traits {
  static constexpr bool is = false, is_mask = false;
  static constexpr int length = 0;
  using element = X;
};
template <class T, int N>
struct vector_traits<simd<T, N>> {
  static constexpr bool is = true, is_mask = false;
  static constexpr int length = N;
  using element = T;
};
template <int N>
struct vector_traits<simd_mask<N>> {
  static constexpr bool is = false, is_mask = true;
  static constexpr int length = N;
  using element = uint16_t;
};
template <class Base, class Region>
struct vector_traits<simd_view<Base, Region>> {
  static constexpr bool is = vector_traits<Base>::is, is_mask = vector_traits<Base>::is_mask;
  static constexpr int length = Region::length;
  using element = typename Region::element_type;
};

// The same kind of vector, of other elements.
template <class Base, class T, int N>
using like_t = std::conditional_t<vector_traits<Base>::is_mask, simd_mask<N>, simd<T, N>>;

template <class X>
inline constexpr bool is_vector = vector_traits<std::remove_cvref_t<X>>::is;
template <class X>
inline constexpr bool is_mask = vector_traits<std::remove_cvref_t<X>>::is_mask;
template <class X>
inline constexpr int length_of = vector_traits<std::remove_cvref_t<X>>::length;
template <class X>
using element_of = typename vector_traits<std::remove_cvref_t<X>>::element;

// Element i of a vector; of a number, the number; of a vector of one, that one.
template <class X>
ESIMD_HOST_REGISTERS constexpr auto element(const X& x, int i) {
  if constexpr (length_of<X> == 1) return x.at(0);
  else if constexpr (length_of<X> > 0) return x.at(i);
  else return x;
}

// In a build with checks, an element that a register has not is told.
ESIMD_HOST_REGISTERS inline void check_place([[maybe_unused]] int i, [[maybe_unused]] int length) {
#ifdef ESIMD_HOST_CHECKS
  if (i < 0 || i >= length) esimd_host::check_register(i, length);
#endif
}

// Makes a vector whose every element is about to be written.
struct Raw {};

template <class...>
inline constexpr bool never = false;

}  // namespace detail
}  // namespace sycl::ext::intel::esimd
