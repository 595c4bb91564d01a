// simd: a vector register. Elements that nobody has written hold poison.
#pragma once
#include "simd_view.hpp"

namespace sycl::ext::intel::esimd {

template <class T, int N>
class simd {
  static_assert(detail::is_element<T>, "esimd host: simd of a type that is no element type");

 public:
  using element_type = T;
  static constexpr int length = N;

  ESIMD_HOST_REGISTERS simd() {
#if !defined(__has_feature)
    poison();
#elif !__has_feature(memory_sanitizer)
    poison();
#endif
  }
  explicit simd(detail::Raw) {}
  simd(const simd&) = default;
  simd& operator=(const simd&) = default;

  template <class X, class = std::enable_if_t<detail::is_vector<X> && detail::length_of<X> == N>>
  ESIMD_HOST_REGISTERS simd(const X& x) {
    for (int i = 0; i < N; ++i) elements_[i] = detail::element_cast<T>(x.at(i));
  }
  template <class X, std::enable_if_t<detail::is_element<X>, int> = 0>
  ESIMD_HOST_REGISTERS simd(X value) {
    const T element = detail::element_cast<T>(value);
    for (int i = 0; i < N; ++i) elements_[i] = element;
  }
  template <class X, std::enable_if_t<detail::is_vector<X> && detail::length_of<X> == 1 && N != 1, int> = 0>
  ESIMD_HOST_REGISTERS simd(const X& single) : simd(single.at(0)) {}
  // From memory.
  ESIMD_HOST_MEMORY explicit simd(const T* p) {
    esimd_host::on_global(p, sizeof(elements_), esimd_host::Access::read);
    esimd_host::copy(elements_, p, sizeof(elements_));
  }
  ESIMD_HOST_REGISTERS simd(T first, T step) {
    for (int i = 0; i < N; ++i) {
      elements_[i] = detail::element_cast<T>(detail::native_t<T>(first) + detail::native_t<T>(step) * i);
    }
  }
  ESIMD_HOST_REGISTERS simd(const T (&&values)[N]) {
    for (int i = 0; i < N; ++i) elements_[i] = values[i];
  }
  ESIMD_HOST_REGISTERS simd(const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = detail::element_cast<T>(mask[i]);
  }

  ESIMD_HOST_REGISTERS T at(int i) const { return elements_[i]; }
  ESIMD_HOST_REGISTERS T& at(int i) { return elements_[i]; }
  ESIMD_HOST_REGISTERS T operator[](int i) const {
    check(i);
    return elements_[i];
  }
  ESIMD_HOST_REGISTERS simd_view<T, 1, 1> operator[](int i) {
    check(i);
    return simd_view<T, 1, 1>(elements_ + i);
  }
  ESIMD_HOST_REGISTERS simd read() const { return *this; }
  T* storage() { return elements_; }
  const T* storage() const { return elements_; }

  template <class To, class = std::enable_if_t<N == 1 && detail::is_element<To>>>
  ESIMD_HOST_REGISTERS operator To() const {
    return detail::element_cast<To>(elements_[0]);
  }
  ESIMD_HOST_COMPOUNDS(simd)

  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd_view<T, M, Step> select(int offset = 0) {
    static_assert((M - 1) * Step < N, "simd::select: the selection does not fit");
    check(offset), check(offset + (M - 1) * Step);
    return simd_view<T, M, Step>(elements_ + offset);
  }
  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd<T, M> select(int offset = 0) const {
    return const_cast<simd*>(this)->template select<M, Step>(offset);
  }
  ESIMD_HOST_REGISTERS simd_view<T, N, 1> select_all() { return simd_view<T, N, 1>(elements_); }
  template <class U>
  ESIMD_HOST_REGISTERS auto bit_cast_view() {
    return select_all().template bit_cast_view<U>();
  }

  ESIMD_HOST_REGISTERS void merge(const simd& values, const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = mask[i] ? values.elements_[i] : elements_[i];
  }
  ESIMD_HOST_REGISTERS void merge(const simd& where_set, const simd& elsewhere, const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = mask[i] ? where_set.elements_[i] : elsewhere.elements_[i];
  }

  // Replicating: `Times` blocks of `Width` elements, `Between` apart, their elements `Step` apart.
  template <int Times>
  ESIMD_HOST_REGISTERS simd<T, Times * N> replicate() const { return replicate_vs_w_hs<Times, 0, N, 1>(0); }
  template <int Times, int Width>
  ESIMD_HOST_REGISTERS simd<T, Times * Width> replicate_w(uint16_t offset) const {
    return replicate_vs_w_hs<Times, 0, Width, 1>(offset);
  }
  template <int Times, int Between, int Width>
  ESIMD_HOST_REGISTERS simd<T, Times * Width> replicate_vs_w(uint16_t offset) const {
    return replicate_vs_w_hs<Times, Between, Width, 1>(offset);
  }
  template <int Times, int Between, int Width, int Step>
  ESIMD_HOST_REGISTERS simd<T, Times * Width> replicate_vs_w_hs(uint16_t offset) const {
    simd<T, Times * Width> made{detail::Raw()};
    for (int t = 0; t < Times; ++t) {
      for (int w = 0; w < Width; ++w) {
        check(offset + t * Between + w * Step);
        made.at(t * Width + w) = elements_[offset + t * Between + w * Step];
      }
    }
    return made;
  }
  template <int M>
  ESIMD_HOST_REGISTERS simd<T, M> iselect(const simd<uint16_t, M>& indices) const {
    simd<T, M> made{detail::Raw()};
    for (int i = 0; i < M; ++i) check(indices.at(i)), made.at(i) = elements_[indices.at(i)];
    return made;
  }
  ESIMD_HOST_REGISTERS uint16_t any() const { return simd_mask<N>(*this).any(); }
  ESIMD_HOST_REGISTERS uint16_t all() const { return simd_mask<N>(*this).all(); }

  ESIMD_HOST_REGISTERS simd operator-() const {
    static_assert(!std::is_unsigned_v<T>, "simd: - does not apply to unsigned types");
    simd made{detail::Raw()};
    for (int i = 0; i < N; ++i) made.elements_[i] = detail::element_cast<T>(-detail::native_t<T>(elements_[i]));
    return made;
  }
  ESIMD_HOST_REGISTERS simd operator+() const { return *this; }
  ESIMD_HOST_REGISTERS simd operator~() const {
    simd made{detail::Raw()};
    for (int i = 0; i < N; ++i) made.elements_[i] = T(~elements_[i]);
    return made;
  }
  ESIMD_HOST_REGISTERS simd_mask<N> operator!() const { return !simd_mask<N>(*this); }

 private:
  ESIMD_HOST_REGISTERS void poison() {
    uint16_t pattern[sizeof(elements_) / 2 + 1];
    for (uint16_t& word : pattern) word = esimd_host::kPoison;
    std::memcpy(static_cast<void*>(elements_), pattern, sizeof(elements_));
  }
  ESIMD_HOST_REGISTERS static void check([[maybe_unused]] int i) {
#ifdef ESIMD_HOST_CHECKS
    if (i < 0 || i >= N) esimd_host::check_register(i, N);
#endif
  }

  T elements_[N];
};

}  // namespace sycl::ext::intel::esimd
