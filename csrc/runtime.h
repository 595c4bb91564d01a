// The SYCL queue of a tensor, and launching a kernel by its name.
//
// Host code sees kernels only through this header: no other file of the host side knows SYCL, or when and by which
// compiler a kernel was built (at first use in the `host` build, ahead of time in the `xpu` build).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/tile.h"
#include "size.h"

namespace esimd_ops {

// A SYCL queue. `waits`: a launch returns when the kernel has ended, as on the CPU.
struct Queue {
  void* sycl_queue;
  bool waits;
};

// A kernel by name: "family/function" or "family/function<template arguments>", as declared in <family>/<family>.sycl.
// `lanes`: the work-items of a sub-group; 1: ESIMD, a work-item of which is a thread of the card.
struct Kernel {
  std::string name;
  size_t lanes = kSubGroupSize;
};

// One-dimensional: `groups` work-groups of `group_size` work-items, a multiple of the kernel's lanes.
struct Range {
  int64_t groups;
  int64_t group_size;
};

// The queue that runs in order with PyTorch's own work on the tensor's device: the CPU device's, or the one behind the
// current stream. None for a tensor without data, on the device meta, where an operator checks its arguments and no more.
Queue queue(const at::Tensor& tensor);

// Work-items that take `elements` side by side, at most kGroupSize. A CPU runs a work-group in one thread: there it is one
// sub-group, which has no other to wait for.
inline int64_t work_items(Queue queue, int64_t elements) {
  const int64_t lanes = (elements + kSubGroupSize - 1) / kSubGroupSize * kSubGroupSize;
  return queue.waits || lanes < kSubGroupSize ? kSubGroupSize : lanes < kGroupSize ? lanes : kGroupSize;
}

// Memory for what one kernel leaves to the next. It may be let go of when the operator returns: the allocator keeps it
// until the work on the current stream is done.
at::Tensor temporary(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype);

// Whether the queue's device runs ESIMD kernels and has engines for small matrix products (XMX) of 16 lanes, as
// Battlemage has.
bool has_matrix_engines(Queue queue);

inline Kernel kernel(std::string_view name) { return {std::string(name)}; }

struct KernelArgument {
  template <typename T>
  KernelArgument(const T& value) : data(&value), size(sizeof(T)), is_pointer(std::is_pointer_v<T>) {
    // A kernel takes its arguments as bytes, so a literal of the wrong width would be read wrongly.
    static_assert(std::is_pointer_v<T> || std::is_same_v<T, int64_t> || std::is_same_v<T, Size> || std::is_same_v<T, float>,
                  "kernel arguments are pointers, int64_t, Size or float");
    static_assert(sizeof(Size) == sizeof(int64_t));
  }
  const void* data;
  size_t size;
  bool is_pointer;
};

// The first launch of a kernel in a process compiles it, or reads it from the cache on disk; it lives as long as the
// process.
void launch(Queue queue, Range range, const Kernel& kernel, std::initializer_list<KernelArgument> arguments);

// On the CPU the results are there on return; on a card they follow in the order of the stream.
template <typename... Arguments>
void nd_launch(Queue queue, Range range, const Kernel& kernel, const Arguments&... arguments) {
  launch(queue, range, kernel, {KernelArgument(arguments)...});
}

// Whether a work-item is to load kSideBySide halves at once: on a card, where these lengths, and all addresses among the
// arguments, are whole multiples of them.
inline bool side_by_side(Queue queue, std::initializer_list<int64_t> lengths,
                         std::initializer_list<KernelArgument> arguments) {
  bool whole = !queue.waits;
  for (const int64_t length : lengths) whole = whole && length % kSideBySide == 0;
  for (const KernelArgument& argument : arguments)
    whole = whole && !(argument.is_pointer && *static_cast<const uintptr_t*>(argument.data) % (2 * kSideBySide));
  return whole;
}

// Launches "name<half, elements that a work-item loads at once>" on rows of K elements, a work-group each.
template <typename... Arguments>
void launch_rows(Queue queue, int64_t rows, const char* name, int64_t K, const Arguments&... arguments) {
  const int64_t each = side_by_side(queue, {K}, {KernelArgument(arguments)...}) ? kSideBySide : 1;
  const std::string kinds = "<half, " + std::to_string(each) + ">";
  nd_launch(queue, {rows, work_items(queue, K / each)}, kernel(name + kinds), arguments..., K);
}

struct DeviceFacts {
  std::string name;
  std::string driver_version;
  std::string platform;
  std::vector<size_t> sub_group_sizes;
  size_t local_memory_bytes;
};

// Of the device that works on CPU tensors.
DeviceFacts device_facts();

// Kernels this process has used, and the seconds each took to become ready (compiled, or read from the cache).
std::map<std::string, double> kernel_facts();

// "host": kernels are compiled at first use; "xpu": the library holds them. Both work on tensors of either device.
const char* build_mode();

}  // namespace esimd_ops
