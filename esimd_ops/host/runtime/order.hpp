// What orders accesses of different work-items beside barriers of a group: a fence, then an atomic update, which another
// work-item sees. Knows stamps; judges and reports nothing.
//
// The rule is the release and acquire of C++: what a work-item did before a fence happened before whatever another does after
// it read, at the same place, an atomic update that the first made after the fence (or a later update). A fence of the scope
// of a group orders the group only. The reader needs no fence of its own: a work-item issues its memory operations in order.
#pragma once
#include <cstdint>
#include <map>

#include "shadow.hpp"

namespace esimd_host {

// Of each group, the epoch before which everything is known; of single work-items, up to which tick.
class Knowledge {
 public:
  bool empty() const { return groups_.empty(); }
  void clear() { groups_.clear(); }
  bool covers(Stamp) const;
  void learn(const Stamp& now);
  void join(const Knowledge&);

 private:
  struct Of {
    uint32_t epoch = 0;
    std::map<uint32_t, uint32_t> ticks;
  };
  std::map<uint32_t, Of> groups_;
};

// Of global memory, and of shared local memory: a fence orders one of them.
struct Both {
  Knowledge of[2];
  bool empty() const { return of[0].empty() && of[1].empty(); }
  void clear() { of[0].clear(), of[1].clear(); }
  void join(const Both& other) { of[0].join(other.of[0]), of[1].join(other.of[1]); }
};

// What somebody saw, and what the next atomic update tells: to the group, and to everybody.
struct Views {
  Both seen, told_group, told_all;
  bool empty() const { return seen.empty() && told_group.empty(); }
  void clear() { seen.clear(), told_group.clear(), told_all.clear(); }
  void join(const Views& other) {
    seen.join(other.seen), told_group.join(other.told_group), told_all.join(other.told_all);
  }
};

void forget_order();
// The work-item at work updates or reads `place` atomically.
void atomic_order(const void* place, bool reads_only, bool local);
// All work-items in [first, last) of a group have met.
struct WorkGroup;
void meeting_order(WorkGroup&, uint32_t first, uint32_t last);
// Whether the work-item at work knows what is stamped.
bool known(Stamp, bool local);

}  // namespace esimd_host
