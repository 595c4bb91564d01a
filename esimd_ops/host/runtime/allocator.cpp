// Stands before torch's CPU allocator while kernels are watched, so that temporaries have exact bounds and hold poison.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "../include/esimd_host/runtime.hpp"
#include "memory.hpp"

namespace esimd_host {

namespace {

constexpr size_t kRoom = 4096;  // on either side, so that a stray access meets nobody else's memory

// What is handed out is its own context, since torch takes memory by its address alone for some layouts.
class Tracking final : public c10::Allocator {
 public:
  explicit Tracking(c10::Allocator* beneath) : beneath_(beneath) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (!on || bytes == 0) return beneath_->allocate(bytes);
    auto whole = beneath_->allocate(bytes + 2 * kRoom);
    auto* start = static_cast<char*>(whole.get());
    for (size_t i = 0; i + 1 < bytes + 2 * kRoom; i += 2) std::memcpy(start + i, &kPoison, 2);
    void* data = start + kRoom;
    memory().allocated(data, bytes);
    std::lock_guard lock(mutex_);
    wholes_.emplace(data, std::move(whole));
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { beneath_->copy_data(to, from, bytes); }

  bool on = false;

 private:
  static void release(void* data);
  void free(void* data) {
    std::unique_lock lock(mutex_);
    auto found = wholes_.extract(data);
    lock.unlock();
    if (found) memory().freed(data);
    else beneath_->raw_deleter()(data);
  }

  c10::Allocator* beneath_;
  std::mutex mutex_;
  std::unordered_map<void*, c10::DataPtr> wholes_;
};

Tracking& tracking() {
  static auto* made = new Tracking(c10::GetCPUAllocator());
  return *made;
}

void Tracking::release(void* data) { tracking().free(data); }

}  // namespace

void track_allocations(bool on) {
  if (c10::GetCPUAllocator() != &tracking()) c10::SetCPUAllocator(&tracking(), 255);
  tracking().on = on;
}

}  // namespace esimd_host
