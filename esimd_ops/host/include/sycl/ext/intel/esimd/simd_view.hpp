// simd_view: elements of a vector or a mask, at strides in one or two dimensions, seen in place. A view of a single element
// is the element to whoever reads it.
#pragma once
#include "types.hpp"

namespace sycl::ext::intel::esimd {

// Vectors and views have these alike; `self` is the class.
#define ESIMD_HOST_COMPOUND(SELF, OP)                       \
  template <class X>                                        \
  ESIMD_HOST_REGISTERS SELF& operator OP##=(const X& x) {   \
    return *this = *this OP x;                              \
  }
#define ESIMD_HOST_COMPOUNDS(SELF, VALUE)                                                                             \
  ESIMD_HOST_COMPOUND(SELF, +) ESIMD_HOST_COMPOUND(SELF, -) ESIMD_HOST_COMPOUND(SELF, *) ESIMD_HOST_COMPOUND(SELF, /) \
  ESIMD_HOST_COMPOUND(SELF, %) ESIMD_HOST_COMPOUND(SELF, &) ESIMD_HOST_COMPOUND(SELF, |) ESIMD_HOST_COMPOUND(SELF, ^) \
  ESIMD_HOST_COMPOUND(SELF, <<) ESIMD_HOST_COMPOUND(SELF, >>)                                                         \
  ESIMD_HOST_REGISTERS SELF& operator++() { return *this += 1; }                                                      \
  ESIMD_HOST_REGISTERS SELF& operator--() { return *this -= 1; }                                                      \
  ESIMD_HOST_REGISTERS VALUE operator++(int) {                                                                        \
    const VALUE old = read();                                                                                         \
    ++*this;                                                                                                          \
    return old;                                                                                                       \
  }                                                                                                                   \
  ESIMD_HOST_REGISTERS VALUE operator--(int) {                                                                        \
    const VALUE old = read();                                                                                         \
    --*this;                                                                                                          \
    return old;                                                                                                       \
  }

template <class Base, class Region>
class simd_view {
 public:
  using element_type = typename Region::element_type;
  using region_type = Region;
  static constexpr int length = Region::length;
  using value_type = detail::like_t<Base, element_type, length>;

  ESIMD_HOST_REGISTERS explicit simd_view(element_type* first) : first_(first) {}
  ESIMD_HOST_REGISTERS simd_view(Base& base) : first_(base.storage()) {
    static_assert(std::is_same_v<Region, region1d_t<typename Base::element_type, Base::length, 1>>);
  }
  simd_view(const simd_view&) = default;

  ESIMD_HOST_REGISTERS element_type at(int i) const { return first_[place(i)]; }
  ESIMD_HOST_REGISTERS auto operator[](int i) const {
    static_assert(!Region::Is_2D, "simd_view: a view of two dimensions has no []: take a row or column");
    return select<1, 1>(i);
  }
  ESIMD_HOST_REGISTERS value_type read() const { return value_type(*this); }
  ESIMD_HOST_REGISTERS value_type data() const { return read(); }
  ESIMD_HOST_REGISTERS simd_view& write(const value_type& values) { return assign(values); }

  static constexpr bool is1D() { return !Region::Is_2D; }
  static constexpr bool is2D() { return Region::Is_2D; }
  static constexpr int getSizeX() { return Region::Size_x; }
  static constexpr int getSizeY() { return Region::Size_y; }

  ESIMD_HOST_REGISTERS operator element_type() const requires(length == 1) { return *first_; }
  template <class To>
    requires(length == 1 && detail::is_wrapper<element_type> && std::is_arithmetic_v<To>)
  ESIMD_HOST_REGISTERS operator To() const {
    return detail::element_cast<To>(*first_);
  }

  ESIMD_HOST_REGISTERS simd_view& operator=(const simd_view& other) { return assign(other.read()); }
  template <class X>
  ESIMD_HOST_REGISTERS simd_view& operator=(const X& x) {
    static_assert(detail::length_of<X> == 0 || detail::length_of<X> == length, "simd_view: the sizes differ");
    if constexpr (detail::is_element<X>) return assign(value_type(detail::element_cast<element_type>(x)));
    else return assign(value_type(x));
  }
  ESIMD_HOST_REGISTERS simd_view& operator=(const element_type (&&values)[length]) {
    return assign(value_type(static_cast<const element_type(&&)[length]>(values)));
  }
  ESIMD_HOST_COMPOUNDS(simd_view, value_type)

  template <int Size, int Step>
  ESIMD_HOST_REGISTERS auto select(int offset = 0) const {
    static_assert(!Region::Is_2D, "simd_view::select: of two dimensions, with sizes and strides of both");
    static_assert((Size - 1) * Step < length, "simd_view::select: the selection does not fit");
    detail::check_place(offset, length), detail::check_place(offset + (Size - 1) * Step, length);
    using Selected = region1d_t<element_type, Size, Size == 1 ? 1 : Step * Region::Stride_x>;
    return simd_view<Base, Selected>(first_ + offset * Region::Stride_x);
  }
  template <int SizeY, int StepY, int SizeX, int StepX>
  ESIMD_HOST_REGISTERS auto select(int y = 0, int x = 0) const {
    static_assert(Region::Is_2D, "simd_view::select: the view has one dimension");
    static_assert((SizeY - 1) * StepY < Region::Size_y && (SizeX - 1) * StepX < Region::Size_x,
                  "simd_view::select: the selection does not fit");
    detail::check_place(y, Region::Size_y), detail::check_place(y + (SizeY - 1) * StepY, Region::Size_y);
    detail::check_place(x, Region::Size_x), detail::check_place(x + (SizeX - 1) * StepX, Region::Size_x);
    using Selected = region2d_t<element_type, SizeY, StepY * Region::Stride_y, SizeX, StepX * Region::Stride_x>;
    return simd_view<Base, Selected>(first_ + y * Region::Stride_y + x * Region::Stride_x);
  }
  ESIMD_HOST_REGISTERS auto row(int y) const {
    static_assert(Region::Is_2D, "simd_view::row: the view has one dimension");
    detail::check_place(y, Region::Size_y);
    return simd_view<Base, region1d_t<element_type, Region::Size_x, Region::Stride_x>>(first_ + y * Region::Stride_y);
  }
  ESIMD_HOST_REGISTERS auto column(int x) const {
    static_assert(Region::Is_2D, "simd_view::column: the view has one dimension");
    return select<Region::Size_y, 1, 1, 1>(0, x);
  }

  template <class U>
  ESIMD_HOST_REGISTERS auto bit_cast_view() const {
    constexpr int bytes = length * int(sizeof(element_type));
    static_assert(bytes % sizeof(U) == 0, "simd_view::bit_cast_view: the sizes do not divide");
    if constexpr (sizeof(U) == sizeof(element_type) && Region::Size_y == 1) {
      return simd_view<Base, region1d_t<U, length, Region::Stride_x>>(reinterpret_cast<U*>(first_));
    } else {
      static_assert(contiguous, "esimd host: bit_cast_view of a view with a stride");
      return simd_view<Base, region1d_t<U, int(bytes / sizeof(U)), 1>>(reinterpret_cast<U*>(first_));
    }
  }
  template <class U, int Height, int Width>
  ESIMD_HOST_REGISTERS auto bit_cast_view() const {
    static_assert(contiguous, "esimd host: bit_cast_view of a view with a stride");
    static_assert(Height * Width * sizeof(U) == length * sizeof(element_type), "simd_view::bit_cast_view: the sizes differ");
    return simd_view<Base, region2d_t<U, Height, Width, Width, 1>>(reinterpret_cast<U*>(first_));
  }

  ESIMD_HOST_REGISTERS void merge(const value_type& values, const simd_mask<length>& mask) {
    for (int i = 0; i < length; ++i) {
      if (mask.at(i)) first_[place(i)] = values.at(i);
    }
  }
  ESIMD_HOST_REGISTERS void merge(const value_type& where_set, value_type elsewhere, const simd_mask<length>& mask) {
    elsewhere.merge(where_set, mask);
    assign(elsewhere);
  }

  template <int Times>
  ESIMD_HOST_REGISTERS auto replicate() const { return read().template replicate<Times>(); }
  template <int Times, int Width>
  ESIMD_HOST_REGISTERS auto replicate_w(int x) const { return replicate_vs_w_hs<Times, 0, Width, 1>(x); }
  template <int Times, int Width>
  ESIMD_HOST_REGISTERS auto replicate_w(int y, int x) const { return replicate_vs_w_hs<Times, 0, Width, 1>(y, x); }
  template <int Times, int Between, int Width>
  ESIMD_HOST_REGISTERS auto replicate_vs_w(int x) const { return replicate_vs_w_hs<Times, Between, Width, 1>(x); }
  template <int Times, int Between, int Width>
  ESIMD_HOST_REGISTERS auto replicate_vs_w(int y, int x) const { return replicate_vs_w_hs<Times, Between, Width, 1>(y, x); }
  template <int Times, int Between, int Width, int Step>
  ESIMD_HOST_REGISTERS auto replicate_vs_w_hs(int x) const {
    return read().template replicate_vs_w_hs<Times, Between, Width, Step>(x);
  }
  template <int Times, int Between, int Width, int Step>
  ESIMD_HOST_REGISTERS auto replicate_vs_w_hs(int y, int x) const {
    return replicate_vs_w_hs<Times, Between, Width, Step>(Region::Is_2D ? y * Region::Size_x + x : x);
  }
  ESIMD_HOST_REGISTERS uint16_t any() const { return read().any(); }
  ESIMD_HOST_REGISTERS uint16_t all() const { return read().all(); }

  ESIMD_HOST_REGISTERS auto operator-() const { return -read(); }
  ESIMD_HOST_REGISTERS auto operator+() const { return read(); }
  ESIMD_HOST_REGISTERS auto operator~() const { return ~read(); }
  ESIMD_HOST_REGISTERS simd_mask<length> operator!() const { return !read(); }

 private:
  static constexpr bool contiguous =
      (Region::Stride_x == 1 || Region::Size_x == 1) && (Region::Size_y == 1 || Region::Stride_y == Region::Size_x);

  ESIMD_HOST_REGISTERS static constexpr int place(int i) {
    if constexpr (Region::Size_y == 1) return i * Region::Stride_x;
    else return i / Region::Size_x * Region::Stride_y + i % Region::Size_x * Region::Stride_x;
  }
  // From a whole copy: what is written may be what was read.
  ESIMD_HOST_REGISTERS simd_view& assign(const value_type& values) {
    for (int i = 0; i < length; ++i) first_[place(i)] = values.at(i);
    return *this;
  }

  element_type* first_;
};

}  // namespace sycl::ext::intel::esimd
