// Functions lane by lane. Those that the hardware approximates are libm's here.
#pragma once
#include <bit>
#include <cmath>

#include "reduce.hpp"

namespace sycl::ext::intel::esimd {

struct saturation_off_tag {};
struct saturation_on_tag {};
inline constexpr saturation_off_tag saturation_off{};
inline constexpr saturation_on_tag saturation_on{};

namespace detail {
template <class T, int N, class F>
ESIMD_HOST_REGISTERS inline simd<T, N> map(const simd<T, N>& x, F f) {
  simd<T, N> made{detail::Raw()};
  for (int i = 0; i < N; ++i) made.at(i) = element_cast<T>(f(native_t<T>(x.at(i))));
  return made;
}
// As the device's headers spell them, with as many digits.
inline constexpr float log2e = 1.442695f, ln2 = 0.69314718f;
template <class T>
inline constexpr bool is_float_or_half = std::is_same_v<T, float> || std::is_same_v<T, sycl::half>;
}  // namespace detail

// A function of vectors, views and single numbers.
#define ESIMD_HOST_VECTORS(NAME, EXPRESSION)                                                                       \
  template <class T, int N, class Saturation = saturation_off_tag>                                                  \
  ESIMD_HOST_REGISTERS inline simd<T, N> NAME(simd<T, N> v, Saturation = {}) {                                      \
    static_assert(!std::is_same_v<Saturation, saturation_on_tag>, "esimd host: " #NAME " does not saturate");       \
    simd<T, N> made{detail::Raw()};                                                                                 \
    for (int i = 0; i < N; ++i) {                                                                                   \
      const auto x = detail::native_t<T>(v.at(i));                                                                  \
      made.at(i) = detail::element_cast<T>(EXPRESSION);                                                             \
    }                                                                                                               \
    return made;                                                                                                    \
  }                                                                                                                 \
  template <class Base, class Region>                                                                               \
  ESIMD_HOST_REGISTERS inline auto NAME(simd_view<Base, Region> v, saturation_off_tag = {}) {                       \
    return NAME(v.read());                                                                                          \
  }
#define ESIMD_HOST_FUNCTION(NAME, EXPRESSION)                                                                       \
  ESIMD_HOST_VECTORS(NAME, EXPRESSION)                                                                              \
  template <class T, std::enable_if_t<detail::is_element<T>, int> = 0>                                              \
  ESIMD_HOST_REGISTERS inline T NAME(T v, saturation_off_tag = {}) {                                                \
    return NAME(simd<T, 1>(v)).at(0);                                                                               \
  }
ESIMD_HOST_FUNCTION(exp, std::exp(x))
ESIMD_HOST_FUNCTION(exp2, std::exp2(x))
ESIMD_HOST_FUNCTION(log, std::log(x))
ESIMD_HOST_FUNCTION(log2, std::log2(x))
ESIMD_HOST_FUNCTION(sqrt, std::sqrt(x))
ESIMD_HOST_FUNCTION(sqrt_ieee, std::sqrt(x))
ESIMD_HOST_FUNCTION(rsqrt, 1 / std::sqrt(x))
ESIMD_HOST_FUNCTION(inv, 1 / x)
ESIMD_HOST_FUNCTION(sin, std::sin(x))
ESIMD_HOST_FUNCTION(cos, std::cos(x))
ESIMD_HOST_FUNCTION(rndd, std::floor(x))
ESIMD_HOST_FUNCTION(rndu, std::ceil(x))
ESIMD_HOST_FUNCTION(rndz, std::trunc(x))
ESIMD_HOST_FUNCTION(rnde, std::nearbyint(x))
ESIMD_HOST_FUNCTION(floor, std::floor(x))
ESIMD_HOST_FUNCTION(ceil, std::ceil(x))
ESIMD_HOST_FUNCTION(trunc, std::trunc(x))
ESIMD_HOST_VECTORS(abs, x < 0 ? -x : x)
using sycl::abs;  // of integers: one function, however a kernel or its host code finds it
template <class T, std::enable_if_t<detail::is_element<T> && !std::is_integral_v<T>, int> = 0>
ESIMD_HOST_REGISTERS inline T abs(T v, saturation_off_tag = {}) {
  return v < 0 ? -v : v;
}
#undef ESIMD_HOST_FUNCTION
#undef ESIMD_HOST_VECTORS

#define ESIMD_HOST_FUNCTION2(NAME, EXPRESSION)                                                                      \
  template <class T, int N, class Saturation = saturation_off_tag>                                                  \
  ESIMD_HOST_REGISTERS inline simd<T, N> NAME(simd<T, N> v, simd<T, N> w, Saturation = {}) {                        \
    static_assert(!std::is_same_v<Saturation, saturation_on_tag>, "esimd host: " #NAME " does not saturate");       \
    simd<T, N> made{detail::Raw()};                                                                                                \
    for (int i = 0; i < N; ++i) {                                                                                   \
      const auto x = detail::native_t<T>(v.at(i)), y = detail::native_t<T>(w.at(i));                                \
      made.at(i) = detail::element_cast<T>(EXPRESSION);                                                             \
    }                                                                                                               \
    return made;                                                                                                    \
  }                                                                                                                 \
  template <class T, int N, class U, std::enable_if_t<detail::is_element<U>, int> = 0>                              \
  ESIMD_HOST_REGISTERS inline simd<T, N> NAME(simd<T, N> v, U w) { return NAME(v, simd<T, N>(w)); }                 \
  template <class T, int N, class U, std::enable_if_t<detail::is_element<U>, int> = 0>                              \
  ESIMD_HOST_REGISTERS inline simd<T, N> NAME(U v, simd<T, N> w) { return NAME(simd<T, N>(v), w); }                 \
  template <class T, std::enable_if_t<detail::is_element<T>, int> = 0>                                              \
  ESIMD_HOST_REGISTERS inline T NAME(T v, T w) { return NAME(simd<T, 1>(v), simd<T, 1>(w)).at(0); }
ESIMD_HOST_FUNCTION2(max, x < y ? y : x)
ESIMD_HOST_FUNCTION2(min, y < x ? y : x)
ESIMD_HOST_FUNCTION2(pow, std::pow(x, y))
#undef ESIMD_HOST_FUNCTION2

template <class T, int N>
ESIMD_HOST_REGISTERS inline simd<T, N> shl(simd<T, N> x, simd<T, N> by) { return simd<T, N>(x << by); }
template <class T, int N>
ESIMD_HOST_REGISTERS inline simd<T, N> shr(simd<T, N> x, simd<T, N> by) {
  using U = std::make_unsigned_t<T>;
  return simd<T, N>(simd<U, N>(simd<U, N>(x) >> simd<U, N>(by)));
}

// Packs the lanes of a mask into bits, and back. The lowest bit is lane 0.
template <int N>
ESIMD_HOST_REGISTERS inline uint32_t pack_mask(simd_mask<N> mask) {
  static_assert(N <= 32, "pack_mask: up to 32 lanes");
  uint32_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= uint32_t(mask.at(i) != 0) << i;
  return bits;
}
template <int N>
ESIMD_HOST_REGISTERS inline simd_mask<N> unpack_mask(uint32_t bits) {
  simd_mask<N> mask(0);
  for (int i = 0; i < N; ++i) mask.at(i) = bits >> i & 1;
  return mask;
}
template <int N>
ESIMD_HOST_REGISTERS inline simd_mask<N> ballot_mask(simd_mask<N> mask) { return mask; }

namespace detail {
template <class T>
ESIMD_HOST_REGISTERS inline T lowest_bit(T x) { return x ? T(std::countr_zero(std::make_unsigned_t<T>(x))) : T(-1); }
// Of a signed number, the first bit that differs from the sign.
template <class T>
ESIMD_HOST_REGISTERS inline T highest_bit(T x) {
  const auto bits = std::make_unsigned_t<T>(x < 0 ? ~x : x);
  return bits ? T(std::countl_zero(bits)) : T(-1);
}
}  // namespace detail

// fbl: the number of the lowest bit that is set; fbh: of the highest, counted from above, of signed numbers the highest that
// differs from the sign; all ones where there is none. cbit: how many are set.
#define ESIMD_HOST_BITS(NAME, WIDTH, RESULT, EXPRESSION)                                                             \
  template <class T, int N, std::enable_if_t<std::is_integral_v<T> && (WIDTH), int> = 0>                             \
  ESIMD_HOST_REGISTERS inline simd<RESULT, N> NAME(simd<T, N> v) {                                                   \
    simd<RESULT, N> made{detail::Raw()};                                                                             \
    for (int i = 0; i < N; ++i) {                                                                                    \
      const T x = v.at(i);                                                                                           \
      made.at(i) = RESULT(EXPRESSION);                                                                               \
    }                                                                                                                \
    return made;                                                                                                     \
  }                                                                                                                  \
  template <class T, std::enable_if_t<std::is_integral_v<T> && (WIDTH), int> = 0>                                    \
  ESIMD_HOST_REGISTERS inline RESULT NAME(T x) { return NAME(simd<T, 1>(x)).at(0); }                                 \
  template <class Base, class Region, std::enable_if_t<Region::length == 1, int> = 0>                                \
  ESIMD_HOST_REGISTERS inline auto NAME(simd_view<Base, Region> x) { return NAME(x.at(0)); }
ESIMD_HOST_BITS(fbl, sizeof(T) == 4, T, detail::lowest_bit(x))
ESIMD_HOST_BITS(fbh, sizeof(T) == 4, T, detail::highest_bit(x))
ESIMD_HOST_BITS(cbit, sizeof(T) <= 4, uint32_t, std::popcount(std::make_unsigned_t<T>(x)))
#undef ESIMD_HOST_BITS

}  // namespace sycl::ext::intel::esimd
