// Every tensor that a kernel may touch, named, and every block that the allocator gave out meanwhile. Knows addresses and
// sizes; runs nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "shadow.hpp"

namespace esimd_host {

struct Region {
  uintptr_t begin, end;
  std::string name;
  size_t granule;    // bytes of an element
  bool read_only;    // nobody writes it, so who reads it does not matter
  std::vector<bool> unwritten;  // empty where all of it holds something
  Cell* cells = nullptr;

  size_t elements() const { return (end - begin + granule - 1) / granule; }
};

class Memory {
 public:
  void watch(const char* name, const void* data, size_t bytes, size_t granule, bool read_only, bool unwritten);
  void unwatch();
  void allocated(const void* data, size_t bytes);
  void freed(const void* data);

  // Forgets who accessed what, and finds out what the host has written into temporaries.
  void launch();

  // The region of an address, or nullptr: then it is outside everything, and `near` the closest one in words.
  Region* find(uintptr_t address);
  std::string near(uintptr_t address) const;

 private:
  using Regions = std::map<uintptr_t, Region>;  // by end
  static Region* in(Regions&, uintptr_t address);

  Regions tensors_, blocks_;
  Region* last_ = nullptr;
  std::mutex mutex_;  // tensors come and go in any thread; kernels are judged in one
};

Memory& memory();

// Allocations of CPU tensors are told to `memory` while this is on, and get poison to hold and room around them.
void track_allocations(bool on);

}  // namespace esimd_host
