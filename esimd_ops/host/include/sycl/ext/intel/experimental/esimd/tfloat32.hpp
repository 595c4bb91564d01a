// tfloat32: a float of which the matrix engine takes the upper 19 bits, rounded to nearest even.
#pragma once
#include <cstdint>
#include <cstring>

namespace sycl::ext::intel::experimental::esimd {

class tfloat32 {
 public:
  tfloat32() = default;
  tfloat32(float value) {
    std::memcpy(&bits_, &value, 4);
    if ((bits_ & 0x7F800000) != 0x7F800000) bits_ += 0xFFF + (bits_ >> 13 & 1);
    bits_ &= 0xFFFFE000;
  }
  operator float() const {
    float value;
    std::memcpy(&value, &bits_, 4);
    return value;
  }

 private:
  uint32_t bits_;
};
static_assert(sizeof(tfloat32) == 4);

}  // namespace sycl::ext::intel::experimental::esimd
