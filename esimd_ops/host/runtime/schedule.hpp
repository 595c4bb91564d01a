// In which order work-groups and work-items run. A value; runs nothing.
#pragma once
#include <cstdint>
#include <string>

namespace esimd_host {

// Written as words, separated by commas: "descending,lockstep" or "random,resident=20,preempt=0.1,seed=7".
struct Schedule {
  enum class Order { ascending, descending, random };
  enum class Items { serial, lockstep, random };

  Order groups = Order::descending;
  Items items = Items::lockstep;  // serial: each to its next barrier; lockstep: one memory operation each in turn
  uint32_t resident = 1;          // work-groups alive at once; 0 for all
  bool card = false;              // instead: so many as a card holds of the kernel (residency.hpp)
  uint32_t stagger = 0;           // memory operations by which the last group starts later than the first
  double preempt = 0;             // the chance that another work-item goes on at a memory operation
  uint64_t seed = 1;
  uint32_t threads = 1;  // of the host; only without checks

  // "" where the words were understood; else what was wrong, and nothing changes.
  std::string parse(const std::string& words);
};

// The schedule of this process; at first that of ESIMD_HOST_SCHEDULE. Throws where that is none.
Schedule& schedule();

}  // namespace esimd_host
