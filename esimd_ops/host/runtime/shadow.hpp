// Who last wrote and read each element, and whether two accesses could have come in the other order. A value; reports
// nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../include/esimd_host/runtime.hpp"

namespace esimd_host {

// One access, in 64 bits: group + 1, work-item, barriers passed, atomic or not, and the code address by its number.
class Stamp {
 public:
  Stamp() = default;
  Stamp(uint32_t group, uint32_t item, uint32_t epoch, bool atomic, uint32_t code)
      : bits_(uint64_t(group + 1) << 40 | uint64_t(item & 0x7FF) << 29 | uint64_t(epoch & 0xFFF) << 17 |
              uint64_t(atomic) << 16 | (code & 0xFFFF)) {}

  explicit operator bool() const { return bits_ != 0; }
  uint32_t group() const { return uint32_t(bits_ >> 40) - 1; }
  uint32_t item() const { return uint32_t(bits_ >> 29) & 0x7FF; }
  uint32_t epoch() const { return uint32_t(bits_ >> 17) & 0xFFF; }
  bool atomic() const { return bits_ >> 16 & 1; }
  uint32_t code() const { return uint32_t(bits_) & 0xFFFF; }

  // Nothing orders the two: other groups of a launch, or another work-item of the group between the same barriers.
  bool concurrent(Stamp other) const {
    return group() != other.group() || (item() != other.item() && epoch() == other.epoch());
  }
  bool same_worker(Stamp other) const { return bits_ >> 29 == other.bits_ >> 29; }

 private:
  uint64_t bits_ = 0;
};

// Of one element: its last writer, and two readers, of different groups where there are such: whoever writes then is
// concurrent with one of them.
struct Cell {
  Stamp writer, readers[2];

  // The access that `now` conflicts with, or none; then `now` is remembered.
  Stamp meet(Stamp now, Access access) {
    Stamp conflict;
    if (writer && writer.concurrent(now) && !(writer.atomic() && now.atomic())) conflict = writer;
    if (access != Access::read) {
      for (const Stamp reader : readers) {
        if (!conflict && reader && reader.concurrent(now)) conflict = reader;
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
