// simd_view: elements of a vector, at a stride, seen in place. A view of a single element is the element to whoever reads
// it.
#pragma once
#include "simd_mask.hpp"

namespace sycl::ext::intel::esimd {

// simd and simd_view have these alike; `self` is the class.
#define ESIMD_HOST_COMPOUND(SELF, OP)                       \
  template <class X>                                        \
  ESIMD_HOST_REGISTERS SELF& operator OP##=(const X& x) {   \
    return *this = *this OP x;                              \
  }
#define ESIMD_HOST_COMPOUNDS(SELF)                                                                                    \
  ESIMD_HOST_COMPOUND(SELF, +) ESIMD_HOST_COMPOUND(SELF, -) ESIMD_HOST_COMPOUND(SELF, *) ESIMD_HOST_COMPOUND(SELF, /) \
  ESIMD_HOST_COMPOUND(SELF, %) ESIMD_HOST_COMPOUND(SELF, &) ESIMD_HOST_COMPOUND(SELF, |) ESIMD_HOST_COMPOUND(SELF, ^) \
  ESIMD_HOST_COMPOUND(SELF, <<) ESIMD_HOST_COMPOUND(SELF, >>)                                                         \
  ESIMD_HOST_REGISTERS SELF& operator++() { return *this += 1; }                                                      \
  ESIMD_HOST_REGISTERS SELF& operator--() { return *this -= 1; }

template <class T, int N, int Stride>
class simd_view {
 public:
  using element_type = T;
  using value_type = simd<T, N>;
  static constexpr int length = N;

  ESIMD_HOST_REGISTERS explicit simd_view(T* first) : first_(first) {}
  simd_view(const simd_view&) = default;

  ESIMD_HOST_REGISTERS T at(int i) const { return first_[i * Stride]; }
  ESIMD_HOST_REGISTERS simd_view<T, 1, 1> operator[](int i) const {
    check(i);
    return simd_view<T, 1, 1>(first_ + i * Stride);
  }
  ESIMD_HOST_REGISTERS simd<T, N> read() const { return simd<T, N>(*this); }

  template <class To, class = std::enable_if_t<N == 1 && detail::is_element<To>>>
  ESIMD_HOST_REGISTERS operator To() const {
    return detail::element_cast<To>(*first_);
  }

  ESIMD_HOST_REGISTERS simd_view& operator=(const simd_view& other) { return assign(other); }
  template <class X>
  ESIMD_HOST_REGISTERS simd_view& operator=(const X& x) {
    return assign(x);
  }
  ESIMD_HOST_COMPOUNDS(simd_view)

  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd_view<T, M, Stride * Step> select(int offset = 0) const {
    static_assert((M - 1) * Step < N, "simd_view::select: the selection does not fit");
    check(offset), check(offset + (M - 1) * Step);
    return simd_view<T, M, Stride * Step>(first_ + offset * Stride);
  }
  template <class U>
  ESIMD_HOST_REGISTERS auto bit_cast_view() const {
    static_assert(Stride == 1, "simd_view::bit_cast_view: the view has a stride");
    static_assert(N * sizeof(T) % sizeof(U) == 0, "simd_view::bit_cast_view: the sizes do not divide");
    return simd_view<U, int(N * sizeof(T) / sizeof(U)), 1>(reinterpret_cast<U*>(first_));
  }
  ESIMD_HOST_REGISTERS void merge(const simd<T, N>& values, const simd_mask<N>& mask) const {
    for (int i = 0; i < N; ++i) first_[i * Stride] = mask[i] ? values.at(i) : first_[i * Stride];
  }
  template <int Times>
  ESIMD_HOST_REGISTERS simd<T, Times * N> replicate() const { return read().template replicate<Times>(); }
  template <int Times, int Width>
  ESIMD_HOST_REGISTERS simd<T, Times * Width> replicate_w(uint16_t offset) const {
    return read().template replicate_w<Times, Width>(offset);
  }
  ESIMD_HOST_REGISTERS uint16_t any() const { return read().any(); }
  ESIMD_HOST_REGISTERS uint16_t all() const { return read().all(); }

 private:
  template <class X>
  ESIMD_HOST_REGISTERS simd_view& assign(const X& x) {
    static_assert(!detail::is_vector<X> || detail::length_of<X> == N, "simd_view: the sizes differ");
    const simd<T, N> values(x);  // a whole copy first: the two may overlap
    for (int i = 0; i < N; ++i) first_[i * Stride] = values.at(i);
    return *this;
  }
  ESIMD_HOST_REGISTERS static void check([[maybe_unused]] int i) {
#ifdef ESIMD_HOST_CHECKS
    if (i < 0 || i >= N) esimd_host::check_register(i, N);
#endif
  }

  T* first_;
};

}  // namespace sycl::ext::intel::esimd
