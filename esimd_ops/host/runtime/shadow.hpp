// Who last wrote and read each element, and whether two accesses could have come in the other order. A value; reports
// nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../include/esimd_host/runtime.hpp"

namespace esimd_host {

// One access: group, work-item, barriers that the group had passed, fences that the work-item had, atomic or not, and the
// code address by its number.
class Stamp {
 public:
  Stamp() = default;
  Stamp(uint32_t group, uint32_t item, uint32_t epoch, uint32_t tick, bool atomic, uint32_t code)
      : group_(group + 1), epoch_(epoch), tick_(tick), item_(item), atomic_(atomic), code_(code) {}

  explicit operator bool() const { return group_ != 0; }
  uint32_t group() const { return group_ - 1; }
  uint32_t item() const { return item_; }
  uint32_t epoch() const { return epoch_; }
  uint32_t tick() const { return tick_; }
  bool atomic() const { return atomic_; }
  uint32_t code() const { return code_; }

  // No barrier orders the two: other groups of a launch, or another work-item of the group between the same barriers.
  bool concurrent(Stamp other) const {
    return group_ != other.group_ || (item_ != other.item_ && epoch_ == other.epoch_);
  }

 private:
  uint32_t group_ = 0, epoch_ = 0, tick_ = 0;
  uint32_t item_ : 11 = 0, atomic_ : 1 = 0, code_ : 20 = 0;
};
static_assert(sizeof(Stamp) == 16);

// Of one element: its last writer, and two readers, of different groups where there are such: whoever writes then is
// concurrent with one of them.
struct Cell {
  Stamp writer, readers[2];

  struct Conflict {
    Stamp with;
    bool wrote = false;
  };

  // The access that `now` conflicts with, or none; then `now` is remembered. `known` says of a concurrent access whether
  // something else than a barrier orders it before `now`.
  template <class Known>
  Conflict meet(Stamp now, Access access, Known known) {
    const auto conflicts = [&](Stamp other) {
      return other && other.concurrent(now) && !(other.atomic() && now.atomic()) && !known(other);
    };
    Conflict conflict;
    if (conflicts(writer)) conflict = {writer, true};
    if (access == Access::write || access == Access::atomic) {
      for (const Stamp reader : readers) {
        if (!conflict.with && conflicts(reader)) conflict = {reader, false};
      }
      writer = now;
    } else if (!readers[0] || !readers[0].concurrent(now)) {
      readers[0] = now;
    } else if (!readers[1] || !readers[1].concurrent(now) || readers[1].group() == readers[0].group()) {
      readers[1] = now;
    }
    return conflict;
  }
};

// The shadow of memory that one work-group shares; used again by later groups, whose stamps differ.
struct Shared {
  std::vector<Cell> cells;
};

}  // namespace esimd_host
