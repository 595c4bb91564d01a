// simd_mask: a truth value for each lane.
#pragma once
#include "types.hpp"

namespace sycl::ext::intel::esimd {

template <int N>
class simd_mask {
 public:
  using element_type = uint16_t;
  static constexpr int length = N;

  ESIMD_HOST_REGISTERS simd_mask() {
    for (int i = 0; i < N; ++i) lanes_[i] = esimd_host::kPoison;
  }
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  ESIMD_HOST_REGISTERS simd_mask(T value) {
    for (int i = 0; i < N; ++i) lanes_[i] = value != 0;
  }
  template <class T>
  ESIMD_HOST_REGISTERS simd_mask(const simd<T, N>& values) {
    for (int i = 0; i < N; ++i) lanes_[i] = values.at(i) != T(0);
  }

  ESIMD_HOST_REGISTERS uint16_t& operator[](int i) { return lanes_[i]; }
  ESIMD_HOST_REGISTERS uint16_t operator[](int i) const { return lanes_[i]; }
  ESIMD_HOST_REGISTERS uint16_t any() const {
    uint16_t found = 0;
    for (int i = 0; i < N; ++i) found |= lanes_[i] != 0;
    return found;
  }
  ESIMD_HOST_REGISTERS uint16_t all() const {
    uint16_t found = 1;
    for (int i = 0; i < N; ++i) found &= lanes_[i] != 0;
    return found;
  }
  template <int M, int Stride>
  ESIMD_HOST_REGISTERS simd_mask<M> select(int offset = 0) const {
    static_assert((M - 1) * Stride < N, "simd_mask::select: the selection does not fit");
    simd_mask<M> made(0);
    for (int i = 0; i < M; ++i) made[i] = lanes_[offset + i * Stride];
    return made;
  }

  ESIMD_HOST_REGISTERS simd_mask operator!() const {
    simd_mask made(0);
    for (int i = 0; i < N; ++i) made.lanes_[i] = !lanes_[i];
    return made;
  }
  ESIMD_HOST_REGISTERS simd_mask operator~() const { return !*this; }

#define ESIMD_HOST_MASK_OPERATOR(OP, JOIN)                                                          \
  ESIMD_HOST_REGISTERS friend simd_mask operator OP(const simd_mask& a, const simd_mask& b) {       \
    simd_mask made(0);                                                                              \
    for (int i = 0; i < N; ++i) made.lanes_[i] = (a.lanes_[i] != 0) JOIN(b.lanes_[i] != 0);         \
    return made;                                                                                    \
  }
  ESIMD_HOST_MASK_OPERATOR(&, &)
  ESIMD_HOST_MASK_OPERATOR(|, |)
  ESIMD_HOST_MASK_OPERATOR(^, !=)
  ESIMD_HOST_MASK_OPERATOR(&&, &)
  ESIMD_HOST_MASK_OPERATOR(||, |)
#undef ESIMD_HOST_MASK_OPERATOR
  simd_mask& operator&=(const simd_mask& other) { return *this = *this & other; }
  simd_mask& operator|=(const simd_mask& other) { return *this = *this | other; }
  simd_mask& operator^=(const simd_mask& other) { return *this = *this ^ other; }

 private:
  uint16_t lanes_[N];
};

}  // namespace sycl::ext::intel::esimd
