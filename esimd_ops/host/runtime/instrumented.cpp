// What a compiler calls under -fsanitize=thread, defined here instead of by ThreadSanitizer: so every access through a plain
// pointer, ptr[i] included, is seen with the address of its code. Host code outside kernels passes through untouched.
#include <atomic>
#include <cstdint>

#include "../include/esimd_host/runtime.hpp"

namespace esimd_host {
void check_pointer(const void* address, size_t bytes, Access, const void* code);
}

using esimd_host::Access;
using esimd_host::check_pointer;

#define HERE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define PLAIN(SIZE)                                                                                                \
  void __tsan_read##SIZE(void* address) { check_pointer(address, SIZE, Access::read, HERE); }                      \
  void __tsan_write##SIZE(void* address) { check_pointer(address, SIZE, Access::write, HERE); }                    \
  void __tsan_unaligned_read##SIZE(void* address) { check_pointer(address, SIZE, Access::read, HERE); }            \
  void __tsan_unaligned_write##SIZE(void* address) { check_pointer(address, SIZE, Access::write, HERE); }          \
  void __tsan_volatile_read##SIZE(void* address) { check_pointer(address, SIZE, Access::read, HERE); }             \
  void __tsan_volatile_write##SIZE(void* address) { check_pointer(address, SIZE, Access::write, HERE); }           \
  void __tsan_read_write##SIZE(void* address) { check_pointer(address, SIZE, Access::write, HERE); }
PLAIN(1) PLAIN(2) PLAIN(4) PLAIN(8) PLAIN(16)
#undef PLAIN

// clang's, of copies and fills.
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  check_pointer(from, bytes, Access::read, HERE);
  check_pointer(to, bytes, Access::write, HERE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  check_pointer(from, bytes, Access::read, HERE);
  check_pointer(to, bytes, Access::write, HERE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  check_pointer(to, bytes, Access::write, HERE);
  return std::memset(to, value, bytes);
}

void __tsan_read_range(void* address, size_t bytes) { check_pointer(address, bytes, Access::read, HERE); }
void __tsan_write_range(void* address, size_t bytes) { check_pointer(address, bytes, Access::write, HERE); }

#define ATOMIC(BITS)                                                                                               \
  using A##BITS = uint##BITS##_t;                                                                                  \
  A##BITS __tsan_atomic##BITS##_load(const volatile A##BITS* a, int) {                                             \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic_read, HERE);                                   \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                                   \
  }                                                                                                                \
  void __tsan_atomic##BITS##_store(volatile A##BITS* a, A##BITS v, int) {                                          \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic, HERE);                                        \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                                      \
  }                                                                                                                \
  ATOMIC_UPDATE(BITS, exchange, __atomic_exchange_n) ATOMIC_UPDATE(BITS, fetch_add, __atomic_fetch_add)            \
  ATOMIC_UPDATE(BITS, fetch_sub, __atomic_fetch_sub) ATOMIC_UPDATE(BITS, fetch_and, __atomic_fetch_and)            \
  ATOMIC_UPDATE(BITS, fetch_or, __atomic_fetch_or) ATOMIC_UPDATE(BITS, fetch_xor, __atomic_fetch_xor)              \
  ATOMIC_UPDATE(BITS, fetch_nand, __atomic_fetch_nand)                                                             \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile A##BITS* a, A##BITS* e, A##BITS v, int, int) {        \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic, HERE);                                        \
    return __atomic_compare_exchange_n(a, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }                                                                                                                \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile A##BITS* a, A##BITS* e, A##BITS v, int, int) {          \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic, HERE);                                        \
    return __atomic_compare_exchange_n(a, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                        \
  }                                                                                                                  \
  A##BITS __tsan_atomic##BITS##_compare_exchange_val(volatile A##BITS* a, A##BITS e, A##BITS v, int, int) {          \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic, HERE);                                        \
    __atomic_compare_exchange_n(a, &e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                              \
    return e;                                                                                                      \
  }
#define ATOMIC_UPDATE(BITS, NAME, BUILTIN)                                                                         \
  A##BITS __tsan_atomic##BITS##_##NAME(volatile A##BITS* a, A##BITS v, int) {                                      \
    check_pointer(const_cast<A##BITS*>(a), BITS / 8, Access::atomic, HERE);                                        \
    return BUILTIN(a, v, __ATOMIC_SEQ_CST);                                                                        \
  }
ATOMIC(8) ATOMIC(16) ATOMIC(32) ATOMIC(64)

void __tsan_atomic_thread_fence(int) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
