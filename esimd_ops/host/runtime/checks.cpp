// Judges each access of a kernel: within bounds, of something written, and ordered against the others.
#include <link.h>

#include <algorithm>
#include <unordered_map>

#include "memory.hpp"
#include "order.hpp"
#include "report.hpp"
#include "work.hpp"

namespace esimd_host {

namespace {

// Code addresses by a number that fits into a stamp.
struct Codes {
  std::vector<const void*> addresses{nullptr};
  std::unordered_map<const void*, uint32_t> numbers;

  uint32_t number(const void* code) {
    if (code == last_code) return last_number;
    const auto [place, fresh] = numbers.try_emplace(code, uint32_t(addresses.size()));
    if (fresh) addresses.push_back(code);
    last_code = code;
    return last_number = place->second;
  }
  const void* last_code = nullptr;
  uint32_t last_number = 0;
};
Codes codes;

// A memory operation: others may run first. True where there is nothing to judge.
inline bool step(Access access) {
  give_way(access);
  return !checking;
}

// What a loaded library brings with it: tables of constants, and functions.
bool in_a_library(uintptr_t address) {
  struct Query {
    uintptr_t address;
    bool found;
  } query{address, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& asked = *static_cast<Query*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && asked.address - begin < segment.p_memsz) asked.found = true;
        }
        return int(asked.found);
      },
      &query);
  return query.found;
}

const char* words(Access access, bool atomic = false) {
  if (atomic || access == Access::atomic || access == Access::atomic_read) return "atomic";
  return access == Access::read ? "read" : "write";
}

Party party(Stamp stamp, const char* did) { return {codes.addresses[stamp.code()], stamp.group(), stamp.item(), did}; }

Stamp stamp_of(Access access, const void* code) {
  const bool atomic = access == Access::atomic || access == Access::atomic_read;
  return {current->group->linear, current->index, group_at_work().epoch, at_work().tick, atomic, codes.number(code)};
}

std::string at(size_t offset, size_t bytes) {
  return "offset " + std::to_string(offset) + ", " + std::to_string(bytes) + " bytes";
}

// What cells [first, last) say to an access, and where.
struct Judged {
  Cell::Conflict conflict;
  size_t place = 0;
};

Judged judge(Cell* cells, size_t first, size_t last, Stamp now, Access access, bool local) {
  Judged judged;
  for (size_t i = first; i < last; ++i) {
    const Cell::Conflict conflict = cells[i].meet(now, access, [&](Stamp before) { return known(before, local); });
    if (conflict.with && !judged.conflict.with) judged = {conflict, i};
  }
  return judged;
}

Party other(const Cell::Conflict& conflict) {
  return party(conflict.with, words(conflict.wrote ? Access::write : Access::read, conflict.with.atomic()));
}

bool writes(Access access) { return access == Access::write || access == Access::atomic; }

void global(const void* address, size_t bytes, Access access, const void* code, bool same_value) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  Region* region = memory().find(begin);
  const Stamp now = stamp_of(access, code);
  const Party me = party(now, words(access));
  if (!region) {
    if (in_a_library(begin)) return;
    report({"out-of-bounds", "outside every tensor", at(0, bytes) + ", " + memory().near(begin), me, {}, false});
    return;
  }
  size_t offset = begin - region->begin;
  if (begin + bytes > region->end) {
    const size_t over = begin + bytes - region->end;
    report({"out-of-bounds", region->name, at(offset, bytes) + ", " + std::to_string(over) + " past its end", me, {}, false});
    bytes -= over;
  }
  if (region->read_only) {
    if (writes(access)) report({"wrote-read-only", region->name, at(offset, bytes), me, {}, same_value});
    return;
  }
  const size_t first = offset / region->granule, last = (offset + bytes - 1) / region->granule + 1;
  if (!region->unwritten.empty()) {
    bool unwritten = false;
    for (size_t i = first; i < last; ++i) {
      unwritten = unwritten || region->unwritten[i];
      if (writes(access)) region->unwritten[i] = false;
    }
    if (unwritten && access != Access::write) {
      report({"unwritten", region->name, at(offset, bytes), me, {}, false});
    }
  }
  if (!region->cells) return;
  const Judged judged = judge(region->cells, first, last, now, access, false);
  if (judged.conflict.with) {
    const bool items = judged.conflict.with.group() == now.group();
    report({items ? "race-of-items" : "race", region->name, at(judged.place * region->granule, region->granule), me,
            other(judged.conflict), same_value});
  }
}

bool shared(Shared& shadow, const char* name, size_t size, size_t offset, size_t bytes, Access access, const void* code) {
  const Stamp now = stamp_of(access, code);
  const Party me = party(now, words(access));
  if (offset + bytes > size) {
    report({"slm-out-of-bounds", name, at(offset, bytes) + " of " + std::to_string(size), me, {}, false});
    return false;
  }
  // Stamps of other groups are of the time when these cells were theirs.
  bool unwritten = false;
  for (size_t i = offset; i < offset + bytes; ++i) {
    Cell& cell = shadow.cells[i];
    if (cell.writer && cell.writer.group() != now.group()) cell = Cell{};
    if (cell.readers[0] && cell.readers[0].group() != now.group()) cell = Cell{};
    unwritten = unwritten || !cell.writer;
  }
  if (unwritten && access != Access::write) report({"slm-unwritten", name, at(offset, bytes), me, {}, false});
  const Judged judged = judge(shadow.cells.data(), offset, offset + bytes, now, access, true);
  if (judged.conflict.with) report({"slm-race", name, at(judged.place, 1), me, other(judged.conflict), false});
  return true;
}

// A value that came from a register or memory that nobody wrote, as arithmetic hands it on.
bool poisoned(const char* value, size_t element) {
  if (element == 4) {
    uint32_t bits;
    std::memcpy(&bits, value, 4);
    bits &= 0x7FFFFFFF;
    return bits == 0x7FF17FF1 || bits == 0x7FFE2000;
  }
  if (element == 2) {
    uint16_t bits;
    std::memcpy(&bits, value, 2);
    bits &= 0x7FFF;
    return bits == kPoison || bits == 0x7F8B;
  }
  return false;
}

bool on_own_stack(const void* address) { return at_work().fiber.contains(address); }

bool of_the_kernel(const void* address) {
  const Launch& launch = *current->group->launch;
  return static_cast<const char*>(address) >= launch.kernel &&
         static_cast<const char*>(address) < static_cast<const char*>(launch.kernel) + launch.kernel_bytes;
}

}  // namespace

// Any access of a kernel through a pointer, to whatever memory.
void check_pointer(const void* address, size_t bytes, Access access, const void* code) {
  if (!current || (!checking && !interleaved)) return;
  if (on_own_stack(address) || of_the_kernel(address) || step(access)) return;
  WorkGroup& group = group_at_work();
  const auto* place = static_cast<const char*>(address);
  if (group.slm && place >= group.slm && place < group.slm + group.slm_bytes) return;  // judged by its offset
  if (group.local && place >= group.local && place < group.local + group.launch->local_bytes) {
    shared(group.local_shadow, "local accessors", group.launch->local_bytes, size_t(place - group.local), bytes, access, code);
    if (access == Access::atomic || access == Access::atomic_read) atomic_order(address, access == Access::atomic_read, true);
    return;
  }
  for (auto& [site, own] : group.own) {
    if (place < own.memory.get() || place >= own.memory.get() + own.bytes) continue;
    shared(own.shadow, "group_local_memory", own.bytes, size_t(place - own.memory.get()), bytes, access, code);
    if (access == Access::atomic || access == Access::atomic_read) atomic_order(address, access == Access::atomic_read, true);
    return;
  }
  global(address, bytes, access, code, false);
  if (access == Access::atomic || access == Access::atomic_read) atomic_order(address, access == Access::atomic_read, false);
}

__attribute__((noinline)) void check_global(const void* address, size_t bytes, Access access) {
  check_pointer(address, bytes, access, __builtin_return_address(0));
}

__attribute__((noinline)) void check_stored(const void* address, const void* value, size_t bytes, size_t element) {
  const void* code = __builtin_return_address(0);
  if (!current || (!checking && !interleaved)) return;
  if (on_own_stack(address) || step(Access::write)) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const Region* region = memory().find(begin);
  const bool inside = region && begin + bytes <= region->end;
  global(address, bytes, Access::write, code, inside && std::memcmp(address, value, bytes) == 0);
  for (size_t i = 0; i < bytes; i += element) {
    if (poisoned(static_cast<const char*>(value) + i, element)) {
      report({"poison-stored", region ? region->name : "memory", "element " + std::to_string(i / element) + " of the store",
              party(stamp_of(Access::write, code), "write"), {}, false});
      return;
    }
  }
}

__attribute__((noinline)) char* check_slm(size_t offset, size_t bytes, Access access) {
  const void* code = __builtin_return_address(0);
  if (step(access)) {
    // Told when accesses are judged; here, as then, it reads as poison and is not written.
    return offset + bytes > current->group->slm_bytes ? nullptr : current->group->slm + offset;
  }
  WorkGroup& group = group_at_work();
  if (group.slm_shadow.cells.size() < group.slm_bytes) group.slm_shadow.cells.resize(group.slm_bytes);
  if (!shared(group.slm_shadow, "SLM", group.slm_bytes, offset, bytes, access, code)) return nullptr;
  char* place = group.slm + offset;
  if (access == Access::atomic || access == Access::atomic_read) atomic_order(place, access == Access::atomic_read, true);
  return place;
}

__attribute__((noinline)) void check_surface(const char* complaint) {
  report({"surface", "2D block access", complaint, {__builtin_return_address(0), 0, 0, "access"}, {}, false});
}

__attribute__((noinline)) void check_register(long index, long length) {
  report({"register-index", "element " + std::to_string(index) + " of " + std::to_string(length), "",
          {__builtin_return_address(0), 0, 0, "access"}, {}, false});
}

#ifdef ESIMD_HOST_CHECKS
void copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace esimd_host
