// sycl::multi_ptr: an address and the name of its space. Memory of one host is one space.
#pragma once
#include <cstddef>
#include <type_traits>

#include "memory_enums.hpp"

namespace sycl {

template <class T, access::address_space Space = access::address_space::generic_space,
          access::decorated Decorated = access::decorated::legacy>
class multi_ptr {
 public:
  using value_type = T;
  using pointer = T*;
  using reference = std::add_lvalue_reference_t<T>;
  using difference_type = std::ptrdiff_t;
  static constexpr access::address_space address_space = Space;

  multi_ptr() = default;
  multi_ptr(T* address) : address_(address) {}
  template <class U, access::address_space S, access::decorated D, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  multi_ptr(const multi_ptr<U, S, D>& other) : address_(other.get()) {}

  T* get() const { return address_; }
  T* get_raw() const { return address_; }
  T* get_decorated() const { return address_; }
  operator T*() const { return address_; }
  T* operator->() const { return address_; }

 private:
  T* address_ = nullptr;
};

template <class T, access::decorated D = access::decorated::legacy>
using global_ptr = multi_ptr<T, access::address_space::global_space, D>;
template <class T, access::decorated D = access::decorated::legacy>
using local_ptr = multi_ptr<T, access::address_space::local_space, D>;

template <access::address_space Space, access::decorated Decorated, class T>
multi_ptr<T, Space, Decorated> address_space_cast(T* address) { return address; }

}  // namespace sycl
