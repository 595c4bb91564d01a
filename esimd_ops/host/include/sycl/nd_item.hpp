// sycl::item, nd_item, group and sub_group: where the work-item at work stands.
#pragma once
#include "../esimd_host/runtime.hpp"
#include "memory_enums.hpp"
#include "range.hpp"

// Of Xe2 where a source does not ask for another.
#ifndef ESIMD_HOST_SUB_GROUP
#define ESIMD_HOST_SUB_GROUP 16
#endif
#define ESIMD_HOST_JOIN2(A, B) A##B
#define ESIMD_HOST_JOIN(A, B) ESIMD_HOST_JOIN2(A, B)
// Sources of different widths may be one library: what knows the width has a name of its own for each.
#define ESIMD_HOST_WIDTH ESIMD_HOST_JOIN(sub_groups_of_, ESIMD_HOST_SUB_GROUP)

namespace sycl {
inline namespace ESIMD_HOST_WIDTH {

inline constexpr uint32_t kSubGroupSize = ESIMD_HOST_SUB_GROUP;

template <int D>
class group {
 public:
  ESIMD_HOST_REGISTERS size_t get_group_id(int i) const { return esimd_host::current->group->id[3 - D + i]; }
  ESIMD_HOST_REGISTERS id<D> get_group_id() const { return make<id<D>>(esimd_host::current->group->id); }
  ESIMD_HOST_REGISTERS size_t get_local_id(int i) const { return esimd_host::current->local[3 - D + i]; }
  ESIMD_HOST_REGISTERS id<D> get_local_id() const { return make<id<D>>(esimd_host::current->local); }
  ESIMD_HOST_REGISTERS size_t get_local_range(int i) const { return launch().locals[3 - D + i]; }
  ESIMD_HOST_REGISTERS range<D> get_local_range() const { return make<range<D>>(launch().locals); }
  ESIMD_HOST_REGISTERS size_t get_group_range(int i) const { return launch().groups[3 - D + i]; }
  ESIMD_HOST_REGISTERS range<D> get_group_range() const { return make<range<D>>(launch().groups); }
  ESIMD_HOST_REGISTERS size_t get_group_linear_id() const { return esimd_host::current->group->linear; }
  ESIMD_HOST_REGISTERS size_t get_group_linear_range() const { return get_group_range().size(); }
  ESIMD_HOST_REGISTERS size_t get_local_linear_id() const { return esimd_host::current->index; }
  ESIMD_HOST_REGISTERS size_t get_local_linear_range() const { return get_local_range().size(); }
  ESIMD_HOST_REGISTERS size_t operator[](int i) const { return get_group_id(i); }
  ESIMD_HOST_REGISTERS bool leader() const { return esimd_host::current->index == 0; }

 private:
  ESIMD_HOST_REGISTERS static const esimd_host::Launch& launch() { return *esimd_host::current->group->launch; }
  template <class T>
  ESIMD_HOST_REGISTERS static T make(const size_t (&values)[3]) {
    T made;
    for (int i = 0; i < D; ++i) made[i] = values[3 - D + i];
    return made;
  }
};

struct sub_group {
  ESIMD_HOST_REGISTERS id<1> get_local_id() const { return esimd_host::current->index % kSubGroupSize; }
  ESIMD_HOST_REGISTERS size_t get_local_linear_id() const { return esimd_host::current->index % kSubGroupSize; }
  ESIMD_HOST_REGISTERS id<1> get_group_id() const { return esimd_host::current->index / kSubGroupSize; }
  ESIMD_HOST_REGISTERS size_t get_group_linear_id() const { return esimd_host::current->index / kSubGroupSize; }
  ESIMD_HOST_REGISTERS range<1> get_max_local_range() const { return kSubGroupSize; }
  ESIMD_HOST_REGISTERS range<1> get_local_range() const { return last() - first(); }
  ESIMD_HOST_REGISTERS size_t get_local_linear_range() const { return last() - first(); }
  ESIMD_HOST_REGISTERS range<1> get_group_range() const {
    return (group<3>().get_local_linear_range() + kSubGroupSize - 1) / kSubGroupSize;
  }
  ESIMD_HOST_REGISTERS size_t get_group_linear_range() const { return get_group_range().size(); }
  ESIMD_HOST_REGISTERS bool leader() const { return get_local_linear_id() == 0; }
  ESIMD_HOST_MEMORY void barrier() const { esimd_host::sub_group_barrier(kSubGroupSize); }

  ESIMD_HOST_REGISTERS uint32_t first() const { return esimd_host::current->index / kSubGroupSize * kSubGroupSize; }
  ESIMD_HOST_REGISTERS uint32_t last() const {
    const auto all = static_cast<uint32_t>(group<3>().get_local_linear_range());
    return first() + kSubGroupSize < all ? first() + kSubGroupSize : all;
  }
};

template <int D = 1>
class nd_item {
 public:
  size_t get_group(int i) const { return at().get_group_id(i); }
  group<D> get_group() const { return {}; }
  size_t get_local_id(int i) const { return at().get_local_id(i); }
  id<D> get_local_id() const { return at().get_local_id(); }
  size_t get_local_range(int i) const { return at().get_local_range(i); }
  range<D> get_local_range() const { return at().get_local_range(); }
  size_t get_group_range(int i) const { return at().get_group_range(i); }
  range<D> get_group_range() const { return at().get_group_range(); }
  size_t get_global_id(int i) const { return get_group(i) * get_local_range(i) + get_local_id(i); }
  id<D> get_global_id() const {
    id<D> made;
    for (int i = 0; i < D; ++i) made[i] = get_global_id(i);
    return made;
  }
  size_t get_global_range(int i) const { return get_group_range(i) * get_local_range(i); }
  size_t get_local_linear_id() const { return at().get_local_linear_id(); }
  size_t get_group_linear_id() const { return at().get_group_linear_id(); }
  size_t get_global_linear_id() const {
    size_t linear = 0;
    for (int i = 0; i < D; ++i) linear = linear * get_global_range(i) + get_global_id(i);
    return linear;
  }
  sub_group get_sub_group() const { return {}; }
  ESIMD_HOST_MEMORY void barrier(access::fence_space = access::fence_space::global_and_local,
                                 const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) const {
    esimd_host::barrier(esimd_host::site(file, line));
  }

 private:
  static group<D> at() { return {}; }
};

template <int D = 1>
class item {
 public:
  item(id<D> position, range<D> size) : position_(position), size_(size) {}
  id<D> get_id() const { return position_; }
  size_t get_id(int i) const { return position_[i]; }
  size_t operator[](int i) const { return position_[i]; }
  range<D> get_range() const { return size_; }
  size_t get_range(int i) const { return size_[i]; }
  size_t get_linear_id() const {
    size_t linear = 0;
    for (int i = 0; i < D; ++i) linear = linear * size_[i] + position_[i];
    return linear;
  }

 private:
  id<D> position_;
  range<D> size_;
};

}  // namespace ESIMD_HOST_WIDTH

namespace ext::oneapi::this_work_item {
inline namespace ESIMD_HOST_WIDTH {
template <int D>
nd_item<D> get_nd_item() { return {}; }
template <int D>
group<D> get_work_group() { return {}; }
inline sub_group get_sub_group() { return {}; }
}  // namespace ESIMD_HOST_WIDTH
}  // namespace ext::oneapi::this_work_item

}  // namespace sycl
