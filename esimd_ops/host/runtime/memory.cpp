#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace esimd_host {

namespace {

void release(Region& region) {
  if (region.cells) munmap(region.cells, region.elements() * sizeof(Cell));
  region.cells = nullptr;
}

// What the host has written meanwhile no longer holds poison. Eight bytes count as one: fewer are as poison by chance.
void look_for_writes(Region& region) {
  constexpr size_t kWord = 8;
  uint16_t poison[kWord / 2];
  std::fill(std::begin(poison), std::end(poison), kPoison);
  bool any = false;
  for (size_t i = 0; i < region.unwritten.size(); i += kWord) {
    const size_t end = std::min(i + kWord, region.unwritten.size());
    if (std::memcmp(reinterpret_cast<const char*>(region.begin) + i, poison, end - i) == 0) {
      any = true;
    } else {
      std::fill(region.unwritten.begin() + long(i), region.unwritten.begin() + long(end), false);
    }
  }
  if (!any) region.unwritten.clear();
}

// Fresh pages are zero and cost nothing until they are touched.
void shadow(Region& region) {
  void* cells = mmap(nullptr, region.elements() * sizeof(Cell), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  region.cells = cells == MAP_FAILED ? nullptr : static_cast<Cell*>(cells);
}

}  // namespace

Memory& memory() {
  static auto& value = *new Memory;
  return value;
}

void Memory::watch(const char* name, const void* data, size_t bytes, size_t granule, bool read_only, bool unwritten) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  Region region{begin, begin + bytes, name, granule, read_only, {}};
  if (unwritten) region.unwritten.assign(region.elements(), true);
  if (!read_only) shadow(region);
  if (const auto old = tensors_.find(region.end); old != tensors_.end()) release(old->second);
  tensors_[region.end] = std::move(region);
  last_ = nullptr;
}

void Memory::unwatch() {
  for (auto& [end, region] : tensors_) release(region);
  tensors_.clear();
  last_ = nullptr;
}

void Memory::allocated(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(data);
  Region region{begin, begin + bytes, "temporary of " + std::to_string(bytes) + " bytes", 1, false, {}};
  region.unwritten.assign(bytes, true);
  blocks_[region.end] = std::move(region);
  last_ = nullptr;
}

void Memory::freed(const void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto found = blocks_.upper_bound(begin);
  if (found == blocks_.end() || found->second.begin != begin) return;
  release(found->second);
  blocks_.erase(found);
  last_ = nullptr;
}

void Memory::launch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [end, region] : tensors_) {
    if (region.cells) madvise(region.cells, region.elements() * sizeof(Cell), MADV_DONTNEED);
  }
  for (auto& [end, region] : blocks_) {
    look_for_writes(region);
    if (region.cells) madvise(region.cells, region.elements() * sizeof(Cell), MADV_DONTNEED);
    else shadow(region);
  }
}

Region* Memory::in(Regions& regions, uintptr_t address) {
  const auto found = regions.upper_bound(address);
  return found != regions.end() && found->second.begin <= address ? &found->second : nullptr;
}

Region* Memory::find(uintptr_t address) {
  if (last_ && address >= last_->begin && address < last_->end) return last_;
  Region* region = in(tensors_, address);
  if (!region) {
    region = in(blocks_, address);
    // A block that tensors lie in is theirs: what is between them belongs to nobody.
    if (region) {
      const auto inside = tensors_.upper_bound(region->begin);
      if (inside != tensors_.end() && inside->second.begin < region->end) region = nullptr;
    }
  }
  if (region) last_ = region;
  return region;
}

std::string Memory::near(uintptr_t address) const {
  constexpr uintptr_t kFar = 1 << 16;
  std::string words;
  uintptr_t closest = kFar;
  for (const Regions* regions : {&tensors_, &blocks_}) {
    for (const auto& [end, region] : *regions) {
      const bool past = address >= end;
      const uintptr_t distance = past ? address - end : region.begin - address;
      if (distance >= closest) continue;
      closest = distance;
      words = std::to_string(distance) + (past ? " bytes past the end of '" : " bytes before '") + region.name + "'";
    }
  }
  return words.empty() ? "far from every tensor" : words;
}

}  // namespace esimd_host
