// Stands before torch's CPU allocator while kernels are watched, so that temporaries have exact bounds and hold poison.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "../include/esimd_host/runtime.hpp"
#include "memory.hpp"

namespace esimd_host {

namespace {

constexpr size_t kRoom = 4096;  // on either side, so that a stray access meets nobody else's memory

struct Block {
  c10::DataPtr memory;
  void* data;
};

class Tracking final : public c10::Allocator {
 public:
  explicit Tracking(c10::Allocator* beneath) : beneath_(beneath) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (!on || bytes == 0) return beneath_->allocate(bytes);
    auto* block = new Block{beneath_->allocate(bytes + 2 * kRoom), nullptr};
    auto* start = static_cast<char*>(block->memory.get());
    for (size_t i = 0; i + 1 < bytes + 2 * kRoom; i += 2) std::memcpy(start + i, &kPoison, 2);
    block->data = start + kRoom;
    memory().allocated(block->data, bytes);
    return {block->data, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return beneath_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { beneath_->copy_data(to, from, bytes); }

  bool on = false;

 private:
  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    memory().freed(block->data);
    delete block;
  }

  c10::Allocator* beneath_;
};

}  // namespace

void track_allocations(bool on) {
  static Tracking* tracking = nullptr;
  if (!tracking) {
    tracking = new Tracking(c10::GetCPUAllocator());
    c10::SetCPUAllocator(tracking, 255);
  }
  tracking->on = on;
}

}  // namespace esimd_host
