// simd: a vector register. Elements that nobody has written hold poison.
#pragma once
#include <iostream>

#include "hints.hpp"
#include "simd_mask.hpp"

namespace sycl::ext::intel::esimd {

template <class T, int N>
class simd {
  static_assert(detail::is_element<T>, "esimd host: simd of a type that is no element type");

 public:
  using element_type = T;
  using raw_element_type = detail::__raw_t<T>;
  using raw_vector_type = simd;
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
  template <class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
  ESIMD_HOST_MEMORY explicit simd(const T* p, Hints = {}) {
    copy_from(p);
  }
  // An arithmetic progression: the step is added from lane to lane, and rounded.
  ESIMD_HOST_REGISTERS simd(T first, T step) {
    elements_[0] = first;
    for (int i = 1; i < N; ++i) {
      elements_[i] = detail::element_cast<T>(detail::native_t<T>(elements_[i - 1]) + detail::native_t<T>(step));
    }
  }
  ESIMD_HOST_REGISTERS simd(const T (&&values)[N]) {
    for (int i = 0; i < N; ++i) elements_[i] = values[i];
  }
  ESIMD_HOST_REGISTERS simd(const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = detail::element_cast<T>(mask.at(i));
  }

  template <class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
  ESIMD_HOST_MEMORY void copy_from(const T* p, Hints = {}) {
    esimd_host::on_global(p, sizeof(elements_), esimd_host::Access::read);
    esimd_host::copy(elements_, p, sizeof(elements_));
  }
  template <class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
  ESIMD_HOST_MEMORY void copy_to(T* p, Hints = {}) const {
#ifdef ESIMD_HOST_CHECKS
    esimd_host::check_stored(p, elements_, sizeof(elements_), sizeof(T));
#else
    esimd_host::on_global(p, sizeof(elements_), esimd_host::Access::write);
#endif
    esimd_host::copy(p, elements_, sizeof(elements_));
  }

  ESIMD_HOST_REGISTERS T at(int i) const { return elements_[i]; }
  ESIMD_HOST_REGISTERS T& at(int i) { return elements_[i]; }
  ESIMD_HOST_REGISTERS T operator[](int i) const {
    detail::check_place(i, N);
    return elements_[i];
  }
  ESIMD_HOST_REGISTERS simd_view<simd, region1d_scalar_t<T>> operator[](int i) {
    detail::check_place(i, N);
    return simd_view<simd, region1d_scalar_t<T>>(elements_ + i);
  }
  ESIMD_HOST_REGISTERS simd read() const { return *this; }
  ESIMD_HOST_REGISTERS simd data() const { return *this; }
  ESIMD_HOST_REGISTERS simd& data_ref() { return *this; }
  ESIMD_HOST_REGISTERS simd& write(const simd& values) { return *this = values; }
  T* storage() { return elements_; }
  const T* storage() const { return elements_; }

  ESIMD_HOST_REGISTERS operator T() const requires(N == 1) { return elements_[0]; }
  template <class To>
    requires(N == 1 && detail::is_element<To> && !std::is_same_v<To, T>)
  ESIMD_HOST_REGISTERS operator To() const {
    return detail::element_cast<To>(elements_[0]);
  }
  ESIMD_HOST_COMPOUNDS(simd, simd)

  // A view of a variable; of a temporary, a copy.
  template <int M, int Step>
  ESIMD_HOST_REGISTERS auto select(int offset = 0) & {
    static_assert((M - 1) * Step < N, "simd::select: the selection does not fit");
    detail::check_place(offset, N), detail::check_place(offset + (M - 1) * Step, N);
    return simd_view<simd, region1d_t<T, M, M == 1 ? 1 : Step>>(elements_ + offset);
  }
  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd<T, M> select(int offset = 0) const& {
    return const_cast<simd*>(this)->template select<M, Step>(offset);
  }
  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd<T, M> select(int offset = 0) && {
    return static_cast<simd&>(*this).template select<M, Step>(offset);
  }
  template <class U>
  ESIMD_HOST_REGISTERS auto bit_cast_view() & {
    return simd_view<simd>(*this).template bit_cast_view<U>();
  }
  template <class U, int Height, int Width>
  ESIMD_HOST_REGISTERS auto bit_cast_view() & {
    return simd_view<simd>(*this).template bit_cast_view<U, Height, Width>();
  }

  ESIMD_HOST_REGISTERS void merge(const simd& values, const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = mask.at(i) ? values.elements_[i] : elements_[i];
  }
  ESIMD_HOST_REGISTERS void merge(const simd& where_set, const simd& elsewhere, const simd_mask<N>& mask) {
    for (int i = 0; i < N; ++i) elements_[i] = mask.at(i) ? where_set.elements_[i] : elsewhere.elements_[i];
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
        detail::check_place(offset + t * Between + w * Step, N);
        made.at(t * Width + w) = elements_[offset + t * Between + w * Step];
      }
    }
    return made;
  }
  template <int M>
  ESIMD_HOST_REGISTERS simd<T, M> iselect(const simd<uint16_t, M>& indices) const {
    simd<T, M> made{detail::Raw()};
    for (int i = 0; i < M; ++i) detail::check_place(indices.at(i), N), made.at(i) = elements_[indices.at(i)];
    return made;
  }
  ESIMD_HOST_REGISTERS void iupdate(uint16_t index, T value) {
    detail::check_place(index, N);
    elements_[index] = value;
  }
  template <int M>
  ESIMD_HOST_REGISTERS void iupdate(const simd<uint16_t, M>& indices, const simd<T, M>& values, const simd_mask<M>& mask) {
    for (int i = 0; i < M; ++i) {
      if (mask.at(i)) iupdate(indices.at(i), values.at(i));
    }
  }
  ESIMD_HOST_REGISTERS uint16_t any() const { return !(!*this).all(); }
  ESIMD_HOST_REGISTERS uint16_t all() const { return !(!*this).any(); }

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
  ESIMD_HOST_REGISTERS simd_mask<N> operator!() const {
    simd_mask<N> made(0);
    for (int i = 0; i < N; ++i) made.at(i) = elements_[i] == T(0);
    return made;
  }

 private:
  ESIMD_HOST_REGISTERS void poison() {
    uint16_t pattern[sizeof(elements_) / 2 + 1];
    for (uint16_t& word : pattern) word = esimd_host::kPoison;
    std::memcpy(static_cast<void*>(elements_), pattern, sizeof(elements_));
  }
  T elements_[N];
};

template <class T, int N>
std::ostream& operator<<(std::ostream& out, const simd<T, N>& values) {
  out << "{ ";
  for (int i = 0; i < N; ++i) out << values.at(i) << " ";
  return out << "}";
}

}  // namespace sycl::ext::intel::esimd
