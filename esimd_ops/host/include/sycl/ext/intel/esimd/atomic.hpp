// Atomic updates of global and shared local memory, a lane each; what they give back is the old value.
#pragma once
#include "slm.hpp"

namespace sycl::ext::intel::esimd {

enum class atomic_op {
  add, sub, inc, dec, umin, umax, smin, smax, xchg, cmpxchg, bit_and, bit_or, bit_xor, load, store,
  fadd, fsub, fmin, fmax, fcmpxchg
};

namespace detail {

template <atomic_op Op>
constexpr int operand_count() {
  switch (Op) {
    case atomic_op::inc: case atomic_op::dec: case atomic_op::load: return 0;
    case atomic_op::cmpxchg: case atomic_op::fcmpxchg: return 2;
    default: return 1;
  }
}

template <atomic_op Op>
inline constexpr auto access_of = Op == atomic_op::load ? esimd_host::Access::atomic_read : esimd_host::Access::atomic;

// The new value. Of a compare-and-exchange, `a` is what is put and `b` what is expected.
template <atomic_op Op, class T>
ESIMD_HOST_REGISTERS inline T updated(T old, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  using enum atomic_op;
  if constexpr (Op == add || Op == fadd) return T(old + a);
  else if constexpr (Op == sub || Op == fsub) return T(old - a);
  else if constexpr (Op == inc) return T(old + T(1));
  else if constexpr (Op == dec) return T(old - T(1));
  else if constexpr (Op == umin || Op == smin || Op == fmin) return a < old ? a : old;
  else if constexpr (Op == umax || Op == smax || Op == fmax) return old < a ? a : old;
  else if constexpr (Op == xchg || Op == store) return a;
  else if constexpr (Op == load) return old;
  else if constexpr (Op == cmpxchg || Op == fcmpxchg) return old == b ? a : old;
  else if constexpr (Op == bit_and) return T(old & a);
  else if constexpr (Op == bit_or) return T(old | a);
  else return T(old ^ a);
}

// In one step, seen from other threads of the host too.
template <atomic_op Op, class T>
ESIMD_HOST_REGISTERS inline T atomically(void* place, T a, T b) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "atomic_update: 2, 4 or 8 bytes");
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  auto* object = static_cast<Bits*>(place);
  Bits old = __atomic_load_n(object, __ATOMIC_SEQ_CST), made;
  do made = sycl::bit_cast<Bits>(updated<Op>(sycl::bit_cast<T>(old), a, b));
  while (!__atomic_compare_exchange_n(object, &old, made, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return sycl::bit_cast<T>(old);
}

template <atomic_op Op, class T, int N, class Offset>
ESIMD_HOST_MEMORY inline simd<T, N> update(T* p, simd<Offset, N> offsets, simd<T, N> a, simd<T, N> b, simd_mask<N> mask) {
  simd<T, N> made;
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    T* place = moved(p, int64_t(offsets.at(i)));
    esimd_host::on_global(place, sizeof(T), access_of<Op>);
    made.at(i) = atomically<Op>(place, a.at(i), b.at(i));
  }
  return made;
}
template <atomic_op Op, class T, int N>
ESIMD_HOST_MEMORY inline simd<T, N> slm_update(simd<uint32_t, N> offsets, simd<T, N> a, simd<T, N> b, simd_mask<N> mask) {
  simd<T, N> made;
  for (int i = 0; i < N; ++i) {
    if (!mask.at(i)) continue;
    if (char* place = esimd_host::on_slm(offsets.at(i), sizeof(T), access_of<Op>)) {
      made.at(i) = atomically<Op>(place, a.at(i), b.at(i));
    }
  }
  return made;
}

}  // namespace detail

template <atomic_op Op, class T, int N, class Offsets, std::enable_if_t<detail::operand_count<Op>() == 0, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> atomic_update(T* p, Offsets offsets, simd_mask<N> mask = 1) {
  return detail::update<Op, T, N>(p, detail::as_vector<Offsets, N>(offsets), simd<T, N>(T(0)), simd<T, N>(T(0)), mask);
}
template <atomic_op Op, class T, int N, class Offsets, std::enable_if_t<detail::operand_count<Op>() == 1, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> atomic_update(T* p, Offsets offsets, simd<T, N> a, simd_mask<N> mask = 1) {
  return detail::update<Op, T, N>(p, detail::as_vector<Offsets, N>(offsets), a, simd<T, N>(T(0)), mask);
}
template <atomic_op Op, class T, int N, class Offsets, std::enable_if_t<detail::operand_count<Op>() == 2, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> atomic_update(T* p, Offsets offsets, simd<T, N> put, simd<T, N> expected,
                                                  simd_mask<N> mask = 1) {
  return detail::update<Op, T, N>(p, detail::as_vector<Offsets, N>(offsets), put, expected, mask);
}
template <atomic_op Op, class T, int N, std::enable_if_t<detail::operand_count<Op>() == 0, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> slm_atomic_update(simd<uint32_t, N> offsets, simd_mask<N> mask = 1) {
  return detail::slm_update<Op, T, N>(offsets, simd<T, N>(T(0)), simd<T, N>(T(0)), mask);
}
template <atomic_op Op, class T, int N, std::enable_if_t<detail::operand_count<Op>() == 1, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> slm_atomic_update(simd<uint32_t, N> offsets, simd<T, N> a, simd_mask<N> mask = 1) {
  return detail::slm_update<Op, T, N>(offsets, a, simd<T, N>(T(0)), mask);
}
template <atomic_op Op, class T, int N, std::enable_if_t<detail::operand_count<Op>() == 2, int> = 0>
ESIMD_HOST_MEMORY inline simd<T, N> slm_atomic_update(simd<uint32_t, N> offsets, simd<T, N> put, simd<T, N> expected,
                                                      simd_mask<N> mask = 1) {
  return detail::slm_update<Op, T, N>(offsets, put, expected, mask);
}

}  // namespace sycl::ext::intel::esimd
