// Sums and other folds of one vector, halving it each time, as the device library does.
#pragma once
#include <functional>

#include "operators.hpp"

namespace sycl::ext::intel::esimd {

namespace detail {
template <class R, class T, int N, class Fold>
ESIMD_HOST_REGISTERS inline R fold(const simd<T, N>& x, Fold op) {
  native_t<R> values[N];
  for (int i = 0; i < N; ++i) values[i] = element_cast<native_t<R>>(x.at(i));
  int length = N;
  for (; length % 2 == 0; length /= 2) {
    for (int i = 0; i < length / 2; ++i) values[i] = element_cast<native_t<R>>(R(op(values[i], values[i + length / 2])));
  }
  for (int i = 1; i < length; ++i) values[0] = element_cast<native_t<R>>(R(op(values[0], values[i])));
  return element_cast<R>(values[0]);
}
template <class R, class T, int N>
ESIMD_HOST_REGISTERS inline R sum(simd<T, N> x) { return fold<R>(x, std::plus<>()); }
template <class R, class T, int N>
ESIMD_HOST_REGISTERS inline R prod(simd<T, N> x) { return fold<R>(x, std::multiplies<>()); }
struct larger {
  template <class T>
  ESIMD_HOST_REGISTERS T operator()(T a, T b) const { return a < b ? b : a; }
};
struct smaller {
  template <class T>
  ESIMD_HOST_REGISTERS T operator()(T a, T b) const { return b < a ? b : a; }
};
}  // namespace detail

template <class R, class T, int N, class Fold>
ESIMD_HOST_REGISTERS inline R reduce(simd<T, N> x, Fold op) {
  static_assert(std::is_same_v<Fold, std::plus<>> || std::is_same_v<Fold, std::multiplies<>>,
                "reduce: std::plus<> or std::multiplies<>");
  return detail::fold<R>(x, op);
}
template <class R, class Base, class Region, class Fold>
ESIMD_HOST_REGISTERS inline R reduce(simd_view<Base, Region> x, Fold op) { return reduce<R>(x.read(), op); }
template <class R, class T, int N>
ESIMD_HOST_REGISTERS inline R hmax(simd<T, N> x) { return detail::fold<R>(x, detail::larger()); }
template <class R, class T, int N>
ESIMD_HOST_REGISTERS inline R hmin(simd<T, N> x) { return detail::fold<R>(x, detail::smaller()); }

}  // namespace sycl::ext::intel::esimd
