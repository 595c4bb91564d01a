// sycl::vec: a few numbers side by side, element by element.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "half_type.hpp"

namespace sycl {

template <class T, int N>
class alignas(sizeof(T) * (N == 3 ? 4 : N) > 64 ? 64 : sizeof(T) * (N == 3 ? 4 : N)) vec {
 public:
  using element_type = T;
  using value_type = T;

  vec() = default;
  explicit vec(const T& value) {
    for (T& element : elements_) element = value;
  }
  template <class... Values, class = std::enable_if_t<sizeof...(Values) == N && (N > 1)>>
  vec(Values... values) : elements_{static_cast<T>(values)...} {}

  T& operator[](int i) { return elements_[i]; }
  const T& operator[](int i) const { return elements_[i]; }
  static constexpr size_t size() { return N; }
  static constexpr size_t byte_size() { return sizeof(vec); }
  T& x() { return elements_[0]; }
  T& y() { return elements_[1]; }
  T& z() { return elements_[2]; }
  T& w() { return elements_[3]; }
  template <class To>
  vec<To, N> convert() const {
    vec<To, N> made;
    for (int i = 0; i < N; ++i) made[i] = static_cast<To>(elements_[i]);
    return made;
  }
  // `offset` counts whole vectors.
  template <class Pointer>
  void load(size_t offset, Pointer p) {
    for (int i = 0; i < N; ++i) elements_[i] = p[offset * N + i];
  }
  template <class Pointer>
  void store(size_t offset, Pointer p) const {
    for (int i = 0; i < N; ++i) p[offset * N + i] = elements_[i];
  }

#define ESIMD_HOST_VEC_OPERATOR(OP)                                                    \
  friend vec operator OP(const vec& a, const vec& b) {                                 \
    vec made;                                                                          \
    for (int i = 0; i < N; ++i) made[i] = static_cast<T>(a[i] OP b[i]);                \
    return made;                                                                       \
  }                                                                                    \
  friend vec operator OP(const vec& a, const T& b) { return a OP vec(b); }             \
  friend vec operator OP(const T& a, const vec& b) { return vec(a) OP b; }             \
  vec& operator OP##=(const vec& other) { return *this = *this OP other; }             \
  vec& operator OP##=(const T& other) { return *this = *this OP vec(other); }
  ESIMD_HOST_VEC_OPERATOR(+) ESIMD_HOST_VEC_OPERATOR(-) ESIMD_HOST_VEC_OPERATOR(*) ESIMD_HOST_VEC_OPERATOR(/)
#undef ESIMD_HOST_VEC_OPERATOR

 private:
  T elements_[N];
};

#define ESIMD_HOST_VEC_NAMES(NAME, T) \
  using NAME##2 = vec<T, 2>;          \
  using NAME##3 = vec<T, 3>;          \
  using NAME##4 = vec<T, 4>;          \
  using NAME##8 = vec<T, 8>;          \
  using NAME##16 = vec<T, 16>;
ESIMD_HOST_VEC_NAMES(char, int8_t) ESIMD_HOST_VEC_NAMES(uchar, uint8_t) ESIMD_HOST_VEC_NAMES(short, int16_t)
ESIMD_HOST_VEC_NAMES(ushort, uint16_t) ESIMD_HOST_VEC_NAMES(int, int32_t) ESIMD_HOST_VEC_NAMES(uint, uint32_t)
ESIMD_HOST_VEC_NAMES(long, int64_t) ESIMD_HOST_VEC_NAMES(ulong, uint64_t) ESIMD_HOST_VEC_NAMES(half, half)
ESIMD_HOST_VEC_NAMES(float, float) ESIMD_HOST_VEC_NAMES(double, double)
#undef ESIMD_HOST_VEC_NAMES

}  // namespace sycl
