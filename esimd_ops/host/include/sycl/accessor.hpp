// sycl::local_accessor: memory of a work-group, laid out by the handler.
#pragma once
#include "../esimd_host/runtime.hpp"
#include "memory_enums.hpp"
#include "multi_ptr.hpp"
#include "range.hpp"

namespace sycl {

class handler;
// Named by headers of others (oneDNN's): what makes one does not compile.
template <class T, int D = 1>
class buffer {
 public:
  buffer() = delete;
  size_t byte_size() const;
  template <class Other, int Dimensions>
  buffer<Other, Dimensions> reinterpret(range<Dimensions>) const;
};

template <class T, int D = 1>
class local_accessor {
 public:
  local_accessor() = default;
  local_accessor(range<D> size, handler&);

  size_t size() const { return size_.size(); }
  ESIMD_HOST_REGISTERS T* get_pointer() const { return reinterpret_cast<T*>(esimd_host::current->group->local + offset_); }
  template <access::decorated Decorated = access::decorated::no>
  local_ptr<T, Decorated> get_multi_ptr() const { return get_pointer(); }
  ESIMD_HOST_REGISTERS decltype(auto) operator[](size_t i) const {
    if constexpr (D == 1) return get_pointer()[i];
    else return get_pointer() + i * size_[1];
  }
  ESIMD_HOST_REGISTERS T& operator[](id<D> i) const {
    size_t linear = 0;
    for (int d = 0; d < D; ++d) linear = linear * size_[d] + i[d];
    return get_pointer()[linear];
  }
  static_assert(D <= 2, "esimd host: local_accessor has one dimension or two");

 private:
  range<D> size_;
  size_t offset_ = 0;
};

}  // namespace sycl
