// sycl::atomic_ref, on real atomic operations.
#pragma once
#include <type_traits>

#include "../esimd_host/runtime.hpp"
#include "memory_enums.hpp"

namespace sycl {

namespace detail {
constexpr bool releases(memory_order order) {
  return order == memory_order::release || order == memory_order::acq_rel || order == memory_order::seq_cst;
}
inline void order_before(memory_order order, memory_scope scope) {
  if (!releases(order)) return;
  for (const bool global : {true, false}) esimd_host::fence(scope >= memory_scope::device, global);
}
}  // namespace detail

inline void atomic_fence(memory_order order, memory_scope scope) {
  if (order == memory_order::relaxed) return;
  for (const bool global : {true, false}) esimd_host::fence(scope >= memory_scope::device, global);
}

template <class T, memory_order Order, memory_scope Scope,
          access::address_space = access::address_space::generic_space>
class atomic_ref {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "esimd host: atomic_ref is for 4 or 8 bytes");

 public:
  using value_type = T;
  static constexpr memory_order default_write_order = Order == memory_order::acq_rel ? memory_order::release : Order;

  explicit atomic_ref(T& object) : object_(&object) {}

  ESIMD_HOST_MEMORY T load(memory_order = Order, memory_scope = Scope) const {
    esimd_host::on_global(object_, sizeof(T), esimd_host::Access::atomic_read);
    return swap(object_, [](T old) { return old; });
  }
  ESIMD_HOST_MEMORY void store(T value, memory_order order = default_write_order, memory_scope scope = Scope) const {
    update(order, scope, [=](T) { return value; });
  }
  ESIMD_HOST_MEMORY T operator=(T value) const {
    store(value);
    return value;
  }
#define ESIMD_HOST_FETCH(NAME, EXPRESSION)                                                                        \
  ESIMD_HOST_MEMORY T NAME(T value, memory_order order = Order, memory_scope scope = Scope) const {              \
    return update(order, scope, [=]([[maybe_unused]] T old) { return T(EXPRESSION); });                          \
  }
  ESIMD_HOST_FETCH(exchange, value)
  ESIMD_HOST_FETCH(fetch_add, old + value)
  ESIMD_HOST_FETCH(fetch_sub, old - value)
  ESIMD_HOST_FETCH(fetch_max, old < value ? value : old)
  ESIMD_HOST_FETCH(fetch_min, value < old ? value : old)
#undef ESIMD_HOST_FETCH
#define ESIMD_HOST_FETCH(NAME, EXPRESSION)                                                                        \
  ESIMD_HOST_MEMORY T NAME(T value, memory_order order = Order, memory_scope scope = Scope) const                \
    requires std::is_integral_v<T>                                                                               \
  {                                                                                                              \
    return update(order, scope, [=](T old) { return T(EXPRESSION); });                                           \
  }
  ESIMD_HOST_FETCH(fetch_and, old & value)
  ESIMD_HOST_FETCH(fetch_or, old | value)
  ESIMD_HOST_FETCH(fetch_xor, old ^ value)
#undef ESIMD_HOST_FETCH
  ESIMD_HOST_MEMORY bool compare_exchange_strong(T& expected, T value, memory_order order, memory_order,
                                                 memory_scope scope = Scope) const {
    return compare_exchange_strong(expected, value, order, scope);
  }
  ESIMD_HOST_MEMORY bool compare_exchange_strong(T& expected, T value, memory_order order = Order,
                                                 memory_scope scope = Scope) const {
    detail::order_before(order, scope);
    esimd_host::on_global(object_, sizeof(T), esimd_host::Access::atomic);
    return exchange_if(object_, &expected, &value);
  }
  template <class... Rest>
  ESIMD_HOST_MEMORY bool compare_exchange_weak(T& expected, T value, Rest... rest) const {
    return compare_exchange_strong(expected, value, rest...);
  }
  ESIMD_HOST_MEMORY T operator+=(T value) const { return fetch_add(value) + value; }
  ESIMD_HOST_MEMORY T operator-=(T value) const { return fetch_sub(value) - value; }
  ESIMD_HOST_MEMORY T operator|=(T value) const { return fetch_or(value) | value; }
  ESIMD_HOST_MEMORY T operator&=(T value) const { return fetch_and(value) & value; }
  ESIMD_HOST_MEMORY T operator++(int) const { return fetch_add(T(1)); }
  ESIMD_HOST_MEMORY T operator++() const { return fetch_add(T(1)) + T(1); }
  ESIMD_HOST_MEMORY T operator--(int) const { return fetch_sub(T(1)); }
  ESIMD_HOST_MEMORY T operator--() const { return fetch_sub(T(1)) - T(1); }
  ESIMD_HOST_MEMORY operator T() const { return load(); }

 private:
  template <class Change>
  ESIMD_HOST_MEMORY T update(memory_order order, memory_scope scope, Change change) const {
    detail::order_before(order, scope);
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
  ESIMD_HOST_REGISTERS static bool exchange_if(T* object, T* expected, T* value) {
    return __atomic_compare_exchange(object, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }

  T* object_;
};

}  // namespace sycl
