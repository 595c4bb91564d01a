// Functions of single numbers, as libm computes them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "half_type.hpp"

namespace sycl {

namespace detail {
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || std::is_same_v<T, half>;
template <class T>
using wide_t = std::conditional_t<std::is_same_v<T, double>, double, float>;
// Another's number (torch's) is computed as what it converts to.
template <class T>
inline constexpr bool is_like_number = is_number<T> || (std::is_class_v<T> && std::is_convertible_v<T, float>);
template <class T>
using number_t = std::conditional_t<is_number<T>, T, float>;
}  // namespace detail

#define ESIMD_HOST_UNARY(NAME, EXPRESSION)                                   \
  template <class T, class = std::enable_if_t<detail::is_like_number<T>>>    \
  inline detail::number_t<T> NAME(T value) {                                 \
    const auto x = static_cast<detail::wide_t<T>>(value);                    \
    return static_cast<detail::number_t<T>>(EXPRESSION);                     \
  }
ESIMD_HOST_UNARY(exp, std::exp(x))
ESIMD_HOST_UNARY(exp2, std::exp2(x))
ESIMD_HOST_UNARY(log, std::log(x))
ESIMD_HOST_UNARY(log2, std::log2(x))
ESIMD_HOST_UNARY(sqrt, std::sqrt(x))
ESIMD_HOST_UNARY(rsqrt, 1 / std::sqrt(x))
ESIMD_HOST_UNARY(sin, std::sin(x))
ESIMD_HOST_UNARY(cos, std::cos(x))
ESIMD_HOST_UNARY(tanh, std::tanh(x))
ESIMD_HOST_UNARY(erf, std::erf(x))
ESIMD_HOST_UNARY(floor, std::floor(x))
ESIMD_HOST_UNARY(ceil, std::ceil(x))
ESIMD_HOST_UNARY(trunc, std::trunc(x))
ESIMD_HOST_UNARY(rint, std::rint(x))
ESIMD_HOST_UNARY(round, std::round(x))
ESIMD_HOST_UNARY(fabs, std::fabs(x))
ESIMD_HOST_UNARY(exp10, std::pow(decltype(x)(10), x))
ESIMD_HOST_UNARY(expm1, std::expm1(x))
ESIMD_HOST_UNARY(log10, std::log10(x))
ESIMD_HOST_UNARY(log1p, std::log1p(x))
ESIMD_HOST_UNARY(tan, std::tan(x))
ESIMD_HOST_UNARY(erfc, std::erfc(x))
#undef ESIMD_HOST_UNARY

inline float nan(uint32_t) { return __builtin_nanf(""); }
inline double nan(uint64_t) { return __builtin_nan(""); }
inline half nan(uint16_t) { return half(__builtin_nanf("")); }
inline float nextafter(float x, float y) { return std::nextafter(x, y); }
inline double nextafter(double x, double y) { return std::nextafter(x, y); }
inline half nextafter(half x, half y) {
  const float from = x, to = y;
  if (from != from || to != to) return from + to;
  if (from == to) return y;
  int16_t bits;
  std::memcpy(&bits, &x, 2);
  if (from == 0) bits = int16_t(to > 0 ? 1 : 0x8001);
  else bits = int16_t(bits + ((from < to) == (from > 0) ? 1 : -1));
  std::memcpy(&x, &bits, 2);
  return x;
}
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline int isnan(T x) { return x != x; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline int isinf(T x) { return std::isinf(static_cast<detail::wide_t<T>>(x)); }

namespace native {
template <class T>
inline T exp(T x) { return sycl::exp(x); }
template <class T>
inline T exp2(T x) { return sycl::exp2(x); }
template <class T>
inline T log(T x) { return sycl::log(x); }
template <class T>
inline T sqrt(T x) { return sycl::sqrt(x); }
template <class T>
inline T rsqrt(T x) { return sycl::rsqrt(x); }
template <class T>
inline T recip(T x) { return T(1) / x; }
template <class T>
inline T sin(T x) { return sycl::sin(x); }
template <class T>
inline T cos(T x) { return sycl::cos(x); }
template <class T>
inline T tanh(T x) { return sycl::tanh(x); }
template <class T>
inline T divide(T x, T y) { return x / y; }
template <class T>
inline T powr(T x, T y) { return static_cast<T>(std::pow(detail::wide_t<T>(x), detail::wide_t<T>(y))); }
}  // namespace native

template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T max(T a, T b) { return a < b ? b : a; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T min(T a, T b) { return b < a ? b : a; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T fmax(T a, T b) { return a < b || a != a ? b : a; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T fmin(T a, T b) { return b < a || a != a ? b : a; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T pow(T x, T y) { return static_cast<T>(std::pow(detail::wide_t<T>(x), detail::wide_t<T>(y))); }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T fma(T a, T b, T c) { return static_cast<T>(std::fma(detail::wide_t<T>(a), detail::wide_t<T>(b), detail::wide_t<T>(c))); }

template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T mad(T a, T b, T c) { return a * b + c; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T fmod(T x, T y) { return static_cast<T>(std::fmod(detail::wide_t<T>(x), detail::wide_t<T>(y))); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T abs(T x) { return x < 0 ? -x : x; }
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline int isfinite(T x) { return std::isfinite(static_cast<detail::wide_t<T>>(x)); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T popcount(T x) { return T(std::popcount(std::make_unsigned_t<T>(x))); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T clz(T x) { return T(std::countl_zero(std::make_unsigned_t<T>(x))); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T ctz(T x) { return T(std::countr_zero(std::make_unsigned_t<T>(x))); }

// The upper half of a product.
template <class T, class = std::enable_if_t<std::is_integral_v<T> && (sizeof(T) <= 8)>>
inline T mul_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((Wide(a) * Wide(b)) >> (8 * sizeof(T)));
}
// Of numbers; true takes the second.
template <class T, class = std::enable_if_t<detail::is_number<T>>>
inline T select(T a, T b, bool second) { return second ? b : a; }

template <class To, class From>
constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace sycl
