// Fibers: a stack each, and a switch between them. Knows nothing of work-items.
#pragma once
#include <cstddef>

namespace esimd_host {

class Fiber {
 public:
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;

  // From the scheduler's stack into the fiber, until that suspends or finishes.
  void resume();
  // To be called first in the fiber.
  void entered();
  // From the fiber back to where it was resumed; `last` where it will not be resumed again.
  void suspend(bool last = false);

  bool contains(const void* address) const {
    return static_cast<const char*>(address) >= stack_ && static_cast<const char*>(address) < stack_ + bytes();
  }
  static size_t bytes();

 private:
  char* stack_;
  void* stack_pointer_;
  void* resumer_ = nullptr;
  void* sanitizer_fiber_ = nullptr;  // what AddressSanitizer or ThreadSanitizer keep of it
  void* sanitizer_resumer_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_bytes_ = 0;
};

}  // namespace esimd_host
