// Unified shared memory: the host's. Blocks start at a cache line.
#pragma once
#include <cstdlib>
#include <limits>
#include <new>

#include "queue.hpp"

namespace sycl {

namespace usm {
enum class alloc { host, device, shared, unknown };
}  // namespace usm

namespace detail {
inline void* allocate(size_t bytes, size_t alignment = 64) {
  alignment = alignment < 64 ? 64 : alignment;
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}
}  // namespace detail

#define ESIMD_HOST_MALLOC(KIND)                                                                                      \
  template <class... Where>                                                                                          \
  void* malloc_##KIND(size_t bytes, const Where&...) { return detail::allocate(bytes); }                             \
  template <class T, class... Where>                                                                                 \
  T* malloc_##KIND(size_t count, const Where&...) { return static_cast<T*>(detail::allocate(count * sizeof(T))); }   \
  template <class... Where>                                                                                          \
  void* aligned_alloc_##KIND(size_t alignment, size_t bytes, const Where&...) {                                      \
    return detail::allocate(bytes, alignment);                                                                       \
  }                                                                                                                  \
  template <class T, class... Where>                                                                                 \
  T* aligned_alloc_##KIND(size_t alignment, size_t count, const Where&...) {                                         \
    return static_cast<T*>(detail::allocate(count * sizeof(T), alignment));                                          \
  }
ESIMD_HOST_MALLOC(host)
ESIMD_HOST_MALLOC(device)
ESIMD_HOST_MALLOC(shared)
#undef ESIMD_HOST_MALLOC
template <class... Where>
void free(void* data, const Where&...) { std::free(data); }

template <class T, usm::alloc Kind, size_t Alignment = 0>
class usm_allocator {
 public:
  using value_type = T;
  template <class U>
  struct rebind {
    using other = usm_allocator<U, Kind, Alignment>;
  };
  template <class... Where>
  usm_allocator(const queue&, const Where&...) {}
  usm_allocator(const context&, const device&) {}
  template <class U>
  usm_allocator(const usm_allocator<U, Kind, Alignment>&) {}
  T* allocate(size_t count) { return static_cast<T*>(detail::allocate(count * sizeof(T), Alignment)); }
  void deallocate(T* data, size_t) { std::free(data); }
  friend bool operator==(const usm_allocator&, const usm_allocator&) { return true; }
};

}  // namespace sycl
