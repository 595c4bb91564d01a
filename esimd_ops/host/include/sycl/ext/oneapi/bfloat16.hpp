// sycl::ext::oneapi::bfloat16: the upper half of a float, rounded to nearest even.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../../half_type.hpp"

namespace sycl::ext::oneapi {

class bfloat16 {
 public:
  bfloat16() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, sycl::half>>>
  bfloat16(T value) {
    const float wide = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &wide, 4);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    bits_ = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }

  operator float() const {
    const uint32_t bits = uint32_t(bits_) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }

  bfloat16& operator+=(bfloat16 other) { return *this = bfloat16(float(*this) + float(other)); }
  bfloat16& operator-=(bfloat16 other) { return *this = bfloat16(float(*this) - float(other)); }
  bfloat16& operator*=(bfloat16 other) { return *this = bfloat16(float(*this) * float(other)); }
  bfloat16& operator/=(bfloat16 other) { return *this = bfloat16(float(*this) / float(other)); }
  bfloat16 operator-() const { return bfloat16(-float(*this)); }
  friend bfloat16 operator+(bfloat16 a, bfloat16 b) { return a += b; }
  friend bfloat16 operator-(bfloat16 a, bfloat16 b) { return a -= b; }
  friend bfloat16 operator*(bfloat16 a, bfloat16 b) { return a *= b; }
  friend bfloat16 operator/(bfloat16 a, bfloat16 b) { return a /= b; }

  // With an integer, bfloat16 again; with another floating-point number, that type.
#define ESIMD_HOST_MIXED(OP)                                                                                        \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                                             \
  friend auto operator OP(bfloat16 a, T b) {                                                               \
    if constexpr (std::is_integral_v<T>) return bfloat16(float(a) OP float(b));                                      \
    else return T(float(a)) OP b;                                                                                   \
  }                                                                                                                \
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                                             \
  friend auto operator OP(T a, bfloat16 b) {                                                               \
    if constexpr (std::is_integral_v<T>) return bfloat16(float(a) OP float(b));                                      \
    else return a OP T(float(b));                                                                                   \
  }
  ESIMD_HOST_MIXED(+) ESIMD_HOST_MIXED(-) ESIMD_HOST_MIXED(*) ESIMD_HOST_MIXED(/)
#undef ESIMD_HOST_MIXED

 private:
  uint16_t bits_;
};
static_assert(sizeof(bfloat16) == 2);

}  // namespace sycl::ext::oneapi
