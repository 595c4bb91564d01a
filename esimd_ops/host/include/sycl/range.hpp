// sycl::range, id and nd_range.
#pragma once
#include <array>
#include <cstddef>
#include <type_traits>

namespace sycl {

namespace detail {
template <int D>
struct Sizes {
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

template <int D = 1>
struct range : detail::Sizes<D> {
  using detail::Sizes<D>::Sizes;
  size_t size() const {
    size_t product = 1;
    for (int i = 0; i < D; ++i) product *= this->get(i);
    return product;
  }
};
template <class... T>
range(T...) -> range<sizeof...(T)>;

template <int D = 1>
struct id : detail::Sizes<D> {
  using detail::Sizes<D>::Sizes;
  template <int E = D, class = std::enable_if_t<E == 1>>
  operator size_t() const {
    return this->get(0);
  }
};

template <int D = 1>
class nd_range {
 public:
  nd_range(range<D> global, range<D> local) : global_(global), local_(local) {}
  range<D> get_global_range() const { return global_; }
  range<D> get_local_range() const { return local_; }

 private:
  range<D> global_, local_;
};

}  // namespace sycl
