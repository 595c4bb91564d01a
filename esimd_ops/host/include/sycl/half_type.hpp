// sycl::half: IEEE binary16. Arithmetic rounds after each operation.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

namespace sycl {

class half {
 public:
  constexpr half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr half(T value) : value_(static_cast<_Float16>(value)) {}
  constexpr half(_Float16 value) : value_(value) {}

  constexpr operator float() const { return static_cast<float>(value_); }

  constexpr half& operator+=(half other) { return *this = half(float(*this) + float(other)); }
  constexpr half& operator-=(half other) { return *this = half(float(*this) - float(other)); }
  constexpr half& operator*=(half other) { return *this = half(float(*this) * float(other)); }
  constexpr half& operator/=(half other) { return *this = half(float(*this) / float(other)); }
  constexpr half operator-() const { return half(static_cast<_Float16>(-value_)); }
  constexpr half& operator++() { return *this += half(1); }
  constexpr half operator++(int) { const half old = *this; ++*this; return old; }
  constexpr half operator--(int) { const half old = *this; --*this; return old; }
  constexpr half& operator--() { return *this -= half(1); }
  friend constexpr half operator+(half a, half b) { return a += b; }
  friend constexpr half operator-(half a, half b) { return a -= b; }
  friend constexpr half operator*(half a, half b) { return a *= b; }
  friend constexpr half operator/(half a, half b) { return a /= b; }

  // With an integer, half again; with another floating-point number, that type.
#define ESIMD_HOST_MIXED(OP)                                                                                        \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                                             \
  friend constexpr auto operator OP(half a, T b) {                                                               \
    if constexpr (std::is_integral_v<T>) return half(float(a) OP float(b));                                      \
    else return T(float(a)) OP b;                                                                                   \
  }                                                                                                                \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                                             \
  friend constexpr auto operator OP(T a, half b) {                                                               \
    if constexpr (std::is_integral_v<T>) return half(float(a) OP float(b));                                      \
    else return a OP T(float(b));                                                                                   \
  }
  ESIMD_HOST_MIXED(+) ESIMD_HOST_MIXED(-) ESIMD_HOST_MIXED(*) ESIMD_HOST_MIXED(/)
#undef ESIMD_HOST_MIXED

 private:
  _Float16 value_;
};
static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);

}  // namespace sycl

template <>
class std::numeric_limits<sycl::half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, has_infinity = true;
  static constexpr bool has_quiet_NaN = true, is_iec559 = true;
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5, radix = 2, max_exponent = 16, min_exponent = -13;
  static constexpr sycl::half min() { return 6.103515625e-5f; }
  static constexpr sycl::half max() { return 65504.0f; }
  static constexpr sycl::half lowest() { return -65504.0f; }
  static constexpr sycl::half epsilon() { return 9.765625e-4f; }
  static constexpr sycl::half denorm_min() { return 5.9604644775390625e-8f; }
  static constexpr sycl::half infinity() { return __builtin_inff(); }
  static constexpr sycl::half quiet_NaN() { return __builtin_nanf(""); }
};
