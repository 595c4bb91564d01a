// Work-groups and work-items while they run: what the scheduler keeps of them, and the checks read.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "../include/esimd_host/runtime.hpp"
#include "fiber.hpp"
#include "order.hpp"
#include "shadow.hpp"

namespace esimd_host {

extern bool checking;  // whether accesses are judged

struct Worker;

struct NamedBarrier {
  uint32_t producers = 0, consumers = 0, round = 0;
};

// What a kernel asks for where it stands.
struct OwnMemory {
  std::unique_ptr<char[]> memory;
  size_t bytes = 0;
  Shared shadow;
};

struct WorkGroup : Group {
  std::vector<Worker*> workers;
  uint32_t done = 0, arrived = 0;
  uint32_t epoch = 1;  // barriers that the whole group has passed
  const void* arrived_at = nullptr;
  size_t arrived_site = 0;
  std::unique_ptr<char[]> slm_memory, local_memory;
  Shared slm_shadow, local_shadow;
  std::map<size_t, OwnMemory> own;  // by the place that asks
  std::vector<char> slots[2];
  std::map<uint32_t, NamedBarrier> named;
  Views views;  // of all its work-items since their last barrier
};

struct Worker : Item {
  enum class State : uint8_t { ready, waiting, named, done };

  explicit Worker(void (*entry)()) : fiber(entry) {}

  Fiber fiber;
  State state = State::ready;
  uint32_t first = 0, last = 0;  // the work-items that it waits for
  uint32_t named = 0;
  uint32_t late = 0;  // memory operations that it still sits out
  uint32_t exchanges = 0;
  uint32_t tick = 1;     // fences so far
  uint32_t atomics = 0;  // since it last gave way
  Views views;
  std::map<uint32_t, uint32_t> rounds;  // of named barriers, at its last signal
  const void* where = nullptr;          // it waits
};

inline WorkGroup& group_at_work() { return *static_cast<WorkGroup*>(current->group); }
inline Worker& at_work() { return *static_cast<Worker*>(current); }

}  // namespace esimd_host
