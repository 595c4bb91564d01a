// simd_mask: a word for each lane, which is on where the word is not 0. Comparisons give 1; ~ turns bits, ! turns lanes.
#pragma once
#include "hints.hpp"
#include "simd_view.hpp"

namespace sycl::ext::intel::esimd {

template <int N>
class simd_mask {
 public:
  using element_type = uint16_t;
  using raw_element_type = uint16_t;
  static constexpr int length = N;

  simd_mask() = default;  // simd_mask<N>{} is off in every lane
  simd_mask(const simd_mask&) = default;
  simd_mask& operator=(const simd_mask&) = default;
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  ESIMD_HOST_REGISTERS simd_mask(T value) {
    for (int i = 0; i < N; ++i) lanes_[i] = uint16_t(value);
  }
  template <class X, std::enable_if_t<(detail::is_vector<X> || detail::is_mask<X>) && detail::length_of<X> == N, int> = 0>
  ESIMD_HOST_REGISTERS simd_mask(const X& values) {
    for (int i = 0; i < N; ++i) lanes_[i] = detail::element_cast<uint16_t>(values.at(i));
  }
  template <class X, std::enable_if_t<(detail::is_vector<X> || detail::is_mask<X>) && detail::length_of<X> == 1 && N != 1, int> = 0>
  ESIMD_HOST_REGISTERS explicit simd_mask(const X& single) : simd_mask(detail::element_cast<uint16_t>(single.at(0))) {}
  ESIMD_HOST_REGISTERS simd_mask(const uint16_t (&&values)[N]) {
    for (int i = 0; i < N; ++i) lanes_[i] = values[i];
  }
  // From memory.
  template <class T, class = std::enable_if_t<std::is_same_v<T, uint16_t>>>
  ESIMD_HOST_MEMORY explicit simd_mask(const T* p) {
    copy_from(p);
  }
  template <class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
  ESIMD_HOST_MEMORY void copy_from(const uint16_t* p, Hints = {}) {
    esimd_host::on_global(p, sizeof(lanes_), esimd_host::Access::read);
    esimd_host::copy(lanes_, p, sizeof(lanes_));
  }
  template <class Hints = properties<>, std::enable_if_t<detail::is_hint<Hints>, int> = 0>
  ESIMD_HOST_MEMORY void copy_to(uint16_t* p, Hints = {}) const {
    esimd_host::on_global(p, sizeof(lanes_), esimd_host::Access::write);
    esimd_host::copy(p, lanes_, sizeof(lanes_));
  }

  ESIMD_HOST_REGISTERS uint16_t at(int i) const { return lanes_[i]; }
  ESIMD_HOST_REGISTERS uint16_t& at(int i) { return lanes_[i]; }
  ESIMD_HOST_REGISTERS uint16_t operator[](int i) const {
    detail::check_place(i, N);
    return lanes_[i];
  }
  ESIMD_HOST_REGISTERS simd_view<simd_mask, region1d_scalar_t<uint16_t>> operator[](int i) {
    detail::check_place(i, N);
    return simd_view<simd_mask, region1d_scalar_t<uint16_t>>(lanes_ + i);
  }
  ESIMD_HOST_REGISTERS simd_mask read() const { return *this; }
  ESIMD_HOST_REGISTERS simd_mask data() const { return *this; }
  ESIMD_HOST_REGISTERS simd_mask& write(const simd_mask& values) { return *this = values; }
  uint16_t* storage() { return lanes_; }
  const uint16_t* storage() const { return lanes_; }
  ESIMD_HOST_REGISTERS operator bool() const requires(N == 1) { return lanes_[0] != 0; }

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

  template <int M, int Step>
  ESIMD_HOST_REGISTERS auto select(int offset = 0) & {
    static_assert((M - 1) * Step < N, "simd_mask::select: the selection does not fit");
    detail::check_place(offset, N), detail::check_place(offset + (M - 1) * Step, N);
    return simd_view<simd_mask, region1d_t<uint16_t, M, M == 1 ? 1 : Step>>(lanes_ + offset);
  }
  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd_mask<M> select(int offset = 0) const& {
    return const_cast<simd_mask*>(this)->template select<M, Step>(offset);
  }
  template <int M, int Step>
  ESIMD_HOST_REGISTERS simd_mask<M> select(int offset = 0) && {
    return static_cast<simd_mask&>(*this).template select<M, Step>(offset);
  }
  template <class U>
  ESIMD_HOST_REGISTERS auto bit_cast_view() & {
    return simd_view<simd_mask>(*this).template bit_cast_view<U>();
  }
  template <class U, int Height, int Width>
  ESIMD_HOST_REGISTERS auto bit_cast_view() & {
    return simd_view<simd_mask>(*this).template bit_cast_view<U, Height, Width>();
  }
  ESIMD_HOST_REGISTERS void merge(const simd_mask& values, const simd_mask& mask) {
    for (int i = 0; i < N; ++i) lanes_[i] = mask.lanes_[i] ? values.lanes_[i] : lanes_[i];
  }
  ESIMD_HOST_REGISTERS void merge(const simd_mask& where_set, simd_mask elsewhere, const simd_mask& mask) {
    elsewhere.merge(where_set, mask);
    *this = elsewhere;
  }

  ESIMD_HOST_REGISTERS simd_mask operator!() const {
    simd_mask made(0);
    for (int i = 0; i < N; ++i) made.lanes_[i] = !lanes_[i];
    return made;
  }
  ESIMD_HOST_REGISTERS simd_mask operator~() const {
    simd_mask made(0);
    for (int i = 0; i < N; ++i) made.lanes_[i] = uint16_t(~lanes_[i]);
    return made;
  }
  template <class X>
  ESIMD_HOST_REGISTERS simd_mask& operator&=(const X& x) { return *this = *this & x; }
  template <class X>
  ESIMD_HOST_REGISTERS simd_mask& operator|=(const X& x) { return *this = *this | x; }
  template <class X>
  ESIMD_HOST_REGISTERS simd_mask& operator^=(const X& x) { return *this = *this ^ x; }

 private:
  uint16_t lanes_[N];
};

namespace detail {
template <class, int N>
using simd_mask_impl = simd_mask<N>;
}  // namespace detail

}  // namespace sycl::ext::intel::esimd
