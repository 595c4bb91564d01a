// sycl::atomic_ref, on real atomic operations.
#pragma once
#include <type_traits>

#include "../esimd_host/runtime.hpp"
#include "memory_enums.hpp"

namespace sycl {

template <class T, memory_order, memory_scope, access::address_space = access::address_space::generic_space>
class atomic_ref {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "esimd host: atomic_ref is for 4 or 8 bytes");

 public:
  explicit atomic_ref(T& object) : object_(&object) {}

  ESIMD_HOST_MEMORY T load(memory_order = {}, memory_scope = {}) const {
    return update([](T old) { return old; });
  }
  ESIMD_HOST_MEMORY void store(T value, memory_order = {}, memory_scope = {}) const {
    update([=](T) { return value; });
  }
  ESIMD_HOST_MEMORY T exchange(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T) { return value; });
  }
  ESIMD_HOST_MEMORY T fetch_add(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return T(old + value); });
  }
  ESIMD_HOST_MEMORY T fetch_sub(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return T(old - value); });
  }
  ESIMD_HOST_MEMORY T fetch_max(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return old < value ? value : old; });
  }
  ESIMD_HOST_MEMORY T fetch_min(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return value < old ? value : old; });
  }
  ESIMD_HOST_MEMORY T fetch_and(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return T(old & value); });
  }
  ESIMD_HOST_MEMORY T fetch_or(T value, memory_order = {}, memory_scope = {}) const {
    return update([=](T old) { return T(old | value); });
  }
  ESIMD_HOST_MEMORY bool compare_exchange_strong(T& expected, T value, memory_order = {}, memory_scope = {}) const {
    esimd_host::on_global(object_, sizeof(T), esimd_host::Access::atomic);
    return __atomic_compare_exchange(object_, &expected, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  ESIMD_HOST_MEMORY T operator+=(T value) const { return fetch_add(value) + value; }
  ESIMD_HOST_MEMORY T operator++(int) const { return fetch_add(T(1)); }
  ESIMD_HOST_MEMORY T operator++() const { return fetch_add(T(1)) + T(1); }
  ESIMD_HOST_MEMORY operator T() const { return load(); }

 private:
  template <class Change>
  ESIMD_HOST_MEMORY T update(Change change) const {
    esimd_host::on_global(object_, sizeof(T), esimd_host::Access::atomic);
    return swap(object_, change);
  }
  template <class Change>
  ESIMD_HOST_REGISTERS static T swap(T* object, Change change) {
    T old, made;
    __atomic_load(object, &old, __ATOMIC_SEQ_CST);
    do made = change(old);
    while (!__atomic_compare_exchange(object, &old, &made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
  }

  T* object_;
};

}  // namespace sycl
