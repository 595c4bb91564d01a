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
  constexpr half& operator--() { return *this -= half(1); }
  friend constexpr half operator+(half a, half b) { return a += b; }
  friend constexpr half operator-(half a, half b) { return a -= b; }
  friend constexpr half operator*(half a, half b) { return a *= b; }
  friend constexpr half operator/(half a, half b) { return a /= b; }

 private:
  _Float16 value_;
};
static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);

}  // namespace sycl
