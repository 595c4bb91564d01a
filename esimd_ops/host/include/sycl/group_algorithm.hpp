// Barriers, fences and functions that a work-group or sub-group computes together.
#pragma once
#include <functional>
#include <type_traits>

#include "nd_item.hpp"

namespace sycl {
inline namespace ESIMD_HOST_WIDTH {

template <class T = void>
using plus = std::plus<T>;
template <class T = void>
using multiplies = std::multiplies<T>;
template <class T = void>
struct maximum {
  template <class U>
  U operator()(const U& a, const U& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  template <class U>
  U operator()(const U& a, const U& b) const { return b < a ? b : a; }
};

namespace gathering {
struct Part {
  uint32_t first, last;
};
template <int D>
Part part(group<D> g) { return {0, static_cast<uint32_t>(g.get_local_linear_range())}; }
inline Part part(sub_group g) { return {g.first(), g.last()}; }

// The values of all work-items of the part, 16 bytes apart, in their order.
template <class G, class T>
const char* gathered(G g, const T& value) {
  static_assert(sizeof(T) <= 16, "esimd host: group functions take values of up to 16 bytes");
  const Part p = part(g);
  return static_cast<const char*>(esimd_host::exchange(&value, sizeof(T), p.first, p.last));
}
template <class T>
ESIMD_HOST_REGISTERS T slot(const char* slots, size_t i) {
  T value;
  std::memcpy(&value, slots + 16 * i, sizeof(T));
  return value;
}
}  // namespace gathering

template <int D>
ESIMD_HOST_MEMORY inline void group_barrier(group<D>, memory_scope = memory_scope::work_group,
                                           const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  esimd_host::barrier(esimd_host::site(file, line));
}
ESIMD_HOST_MEMORY inline void group_barrier(sub_group g, memory_scope = memory_scope::sub_group) { g.barrier(); }
template <class G, class T, class Op>
T reduce_over_group(G g, T value, Op op) {
  const char* slots = gathering::gathered(g, value);
  T sum = gathering::slot<T>(slots, 0);
  for (size_t i = 1, n = g.get_local_linear_range(); i < n; ++i) sum = op(sum, gathering::slot<T>(slots, i));
  return sum;
}
template <class G, class T, class Op>
T inclusive_scan_over_group(G g, T value, Op op) {
  const char* slots = gathering::gathered(g, value);
  T sum = gathering::slot<T>(slots, 0);
  for (size_t i = 1; i <= g.get_local_linear_id(); ++i) sum = op(sum, gathering::slot<T>(slots, i));
  return sum;
}
template <class G, class T, class Op>
T exclusive_scan_over_group(G g, T value, T sum, Op op) {
  const char* slots = gathering::gathered(g, value);
  for (size_t i = 0; i < g.get_local_linear_id(); ++i) sum = op(sum, gathering::slot<T>(slots, i));
  return sum;
}
template <class G, class T, class U>
T exclusive_scan_over_group(G g, T value, plus<U> op) { return exclusive_scan_over_group(g, value, T{}, op); }
template <class G, class T>
T group_broadcast(G g, T value, size_t from = 0) { return gathering::slot<T>(gathering::gathered(g, value), from); }
template <class G>
bool any_of_group(G g, bool value) { return reduce_over_group(g, int(value), maximum<>()); }
template <class G>
bool all_of_group(G g, bool value) { return reduce_over_group(g, int(value), minimum<>()); }

template <class T>
T select_from_group(sub_group g, T value, id<1> from) { return gathering::slot<T>(gathering::gathered(g, value), from[0]); }
template <class T>
T permute_group_by_xor(sub_group g, T value, size_t mask) {
  return gathering::slot<T>(gathering::gathered(g, value), g.get_local_linear_id() ^ mask);
}
template <class T>
T shift_group_left(sub_group g, T value, size_t by = 1) {
  const size_t from = g.get_local_linear_id() + by;
  const char* slots = gathering::gathered(g, value);
  return gathering::slot<T>(slots, from < g.get_local_linear_range() ? from : g.get_local_linear_id());
}
template <class T>
T shift_group_right(sub_group g, T value, size_t by = 1) {
  const size_t at = g.get_local_linear_id();
  return gathering::slot<T>(gathering::gathered(g, value), at >= by ? at - by : at);
}

// Over memory that the whole group sees: one work-item computes it, and the others see the result.
template <class G, class In, class Out, class T, class Op>
Out joint_exclusive_scan(G g, In first, In last, Out result, T sum, Op op) {
  group_barrier(g);
  Out end = result + (last - first);
  if (g.leader())
    for (; first != last; ++first, ++result) {
      const T value = *first;
      *result = sum;
      sum = op(sum, value);
    }
  group_barrier(g);
  return end;
}
template <class G, class In, class Out, class Op>
Out joint_inclusive_scan(G g, In first, In last, Out result, Op op) {
  group_barrier(g);
  Out end = result + (last - first);
  if (g.leader() && first != last) {
    std::decay_t<decltype(*first)> sum = *first;
    for (*result = sum; ++first != last;) *++result = sum = op(sum, *first);
  }
  group_barrier(g);
  return end;
}
template <class G, class In, class Out, class Op, class T>
Out joint_inclusive_scan(G g, In first, In last, Out result, Op op, T sum) {
  group_barrier(g);
  Out end = result + (last - first);
  if (g.leader())
    for (; first != last; ++first, ++result) *result = sum = op(sum, *first);
  group_barrier(g);
  return end;
}

}  // namespace ESIMD_HOST_WIDTH

namespace ext::oneapi {
inline namespace ESIMD_HOST_WIDTH {
// One bit a work-item of the sub-group, the first in the lowest.
class sub_group_mask {
 public:
  sub_group_mask(uint32_t bits = 0) : bits_(bits & all_bits()) {}
  bool operator[](id<1> i) const { return bits_ >> i[0] & 1; }
  bool any() const { return bits_ != 0; }
  bool all() const { return bits_ == all_bits(); }
  bool none() const { return bits_ == 0; }
  uint32_t count() const { return __builtin_popcount(bits_); }
  uint32_t size() const { return kSubGroupSize; }
  id<1> find_low() const { return bits_ ? __builtin_ctz(bits_) : kSubGroupSize; }
  id<1> find_high() const { return bits_ ? 31 - __builtin_clz(bits_) : kSubGroupSize; }
  void extract_bits(uint32_t& into, id<1> from = 0) const { into = bits_ >> from[0]; }
  sub_group_mask operator~() const { return ~bits_; }
  friend sub_group_mask operator&(const sub_group_mask& a, const sub_group_mask& b) { return a.bits_ & b.bits_; }
  friend sub_group_mask operator|(const sub_group_mask& a, const sub_group_mask& b) { return a.bits_ | b.bits_; }
  friend sub_group_mask operator^(const sub_group_mask& a, const sub_group_mask& b) { return a.bits_ ^ b.bits_; }
  friend bool operator==(const sub_group_mask& a, const sub_group_mask& b) { return a.bits_ == b.bits_; }
  friend bool operator!=(const sub_group_mask& a, const sub_group_mask& b) { return a.bits_ != b.bits_; }

 private:
  static constexpr uint32_t all_bits() { return uint32_t((uint64_t(1) << kSubGroupSize) - 1); }
  uint32_t bits_;
};
inline sub_group_mask group_ballot(sub_group g, bool value) {
  return reduce_over_group(g, uint32_t(value) << g.get_local_linear_id(), std::bit_or<>());
}
}  // namespace ESIMD_HOST_WIDTH
}  // namespace ext::oneapi

}  // namespace sycl
