// A number of elements, rows or bytes that an operator makes of its arguments.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <ostream>

namespace esimd_ops {

// A product or sum of such numbers that 64 bits do not hold is kTooMany, which no tensor has: the check that compares it
// with a tensor's size fails, where a number that wrapped around could pass.
class Size {
 public:
  static constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max();

  constexpr Size(int64_t value) : value_(value) {}
  constexpr operator int64_t() const { return value_; }

  friend constexpr Size operator*(Size one, Size other) {
    int64_t product = 0;
    return __builtin_mul_overflow(one.value_, other.value_, &product) ? kTooMany : product;
  }
  template <std::integral Number>
  friend constexpr Size operator*(Size one, Number other) {
    return one * Size(other);
  }
  template <std::integral Number>
  friend constexpr Size operator*(Number one, Size other) {
    return Size(one) * other;
  }
  friend constexpr Size operator+(Size one, Size other) {
    int64_t sum = 0;
    return __builtin_add_overflow(one.value_, other.value_, &sum) ? kTooMany : sum;
  }
  template <std::integral Number>
  friend constexpr Size operator+(Size one, Number other) {
    return one + Size(other);
  }
  friend std::ostream& operator<<(std::ostream& out, Size size) {
    return size.value_ == kTooMany ? out << "more than 2^63" : out << size.value_;
  }

 private:
  int64_t value_;
};

}  // namespace esimd_ops
