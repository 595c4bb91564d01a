// sycl::range, id and nd_range.
#pragma once
#include <array>
#include <cstddef>
#include <type_traits>

namespace sycl {

namespace detail {
template <int D>
struct Sizes {
  static constexpr int dimensions = D;

  Sizes() = default;
  template <class... T, class = std::enable_if_t<sizeof...(T) == D && (std::is_convertible_v<T, size_t> && ...)>>
  Sizes(T... sizes) : values_{static_cast<size_t>(sizes)...} {}

  size_t get(int dimension) const { return values_[dimension]; }
  size_t operator[](int dimension) const { return values_[dimension]; }
  size_t& operator[](int dimension) { return values_[dimension]; }
  friend bool operator==(const Sizes& a, const Sizes& b) { return a.values_ == b.values_; }

 private:
  std::array<size_t, D> values_{};
};
}  // namespace detail

// Arithmetic dimension by dimension, with another or with one number.
#define ESIMD_HOST_SIZES_OPERATOR(SELF, OP)                                                  \
  friend SELF operator OP(const SELF& a, const SELF& b) {                                    \
    SELF made;                                                                               \
    for (int i = 0; i < D; ++i) made[i] = a[i] OP b[i];                                      \
    return made;                                                                             \
  }                                                                                          \
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>                        \
  friend SELF operator OP(const SELF& a, T b) {                                              \
    SELF made;                                                                               \
    for (int i = 0; i < D; ++i) made[i] = a[i] OP size_t(b);                                 \
    return made;                                                                             \
  }                                                                                          \
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>                        \
  friend SELF operator OP(T a, const SELF& b) {                                              \
    SELF made;                                                                               \
    for (int i = 0; i < D; ++i) made[i] = size_t(a) OP b[i];                                 \
    return made;                                                                             \
  }                                                                                          \
  template <class T>                                                                         \
  SELF& operator OP##=(const T& other) { return *this = *this OP other; }
#define ESIMD_HOST_SIZES_OPERATORS(SELF)                                                     \
  ESIMD_HOST_SIZES_OPERATOR(SELF, +) ESIMD_HOST_SIZES_OPERATOR(SELF, -)                      \
  ESIMD_HOST_SIZES_OPERATOR(SELF, *) ESIMD_HOST_SIZES_OPERATOR(SELF, /)                      \
  ESIMD_HOST_SIZES_OPERATOR(SELF, %)

template <int D = 1>
struct range : detail::Sizes<D> {
  using detail::Sizes<D>::Sizes;
  size_t size() const {
    size_t product = 1;
    for (int i = 0; i < D; ++i) product *= this->get(i);
    return product;
  }
  ESIMD_HOST_SIZES_OPERATORS(range)
};
template <class... T>
range(T...) -> range<sizeof...(T)>;

template <int D = 1>
struct id : detail::Sizes<D> {
  using detail::Sizes<D>::Sizes;
  id(const range<D>& sizes) {
    for (int i = 0; i < D; ++i) (*this)[i] = sizes[i];
  }
  operator size_t() const requires(D == 1) { return this->get(0); }
  ESIMD_HOST_SIZES_OPERATORS(id)
};
template <class... T>
id(T...) -> id<sizeof...(T)>;
#undef ESIMD_HOST_SIZES_OPERATORS
#undef ESIMD_HOST_SIZES_OPERATOR

template <int D = 1>
class nd_range {
 public:
  nd_range(range<D> global, range<D> local) : global_(global), local_(local) {}
  range<D> get_global_range() const { return global_; }
  range<D> get_local_range() const { return local_; }
  range<D> get_group_range() const { return global_ / local_; }

 private:
  range<D> global_, local_;
};

}  // namespace sycl
