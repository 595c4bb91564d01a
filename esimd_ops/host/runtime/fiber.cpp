// The switch is our own: ucontext's makes a system call each time, and a work-item switches at every memory operation when
// work-items go in lockstep. Stacks come from a pool, since each costs two mappings and a process may have some 65 thousand.
#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOST_ASAN 1
#endif
#if __has_feature(memory_sanitizer)
#define HOST_MSAN 1
#include <sanitizer/msan_interface.h>
#endif
#endif
#ifdef HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ESIMD_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifndef __x86_64__
#error "esimd host: fibers are written for x86-64"
#endif

// void esimd_host_switch(void** save, void* load): what the System V ABI lets a call change is changed anyway.
asm(R"(
.text
.globl esimd_host_switch
.hidden esimd_host_switch
.type esimd_host_switch,@function
esimd_host_switch:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
.size esimd_host_switch,.-esimd_host_switch
)");
extern "C" void esimd_host_switch(void** save, void* load);

namespace esimd_host {

namespace {

constexpr size_t kPage = 4096;
#if defined(HOST_ASAN) || defined(HOST_MSAN) || defined(ESIMD_HOST_TSAN)
constexpr size_t kStack = size_t(4) << 20;
#else
constexpr size_t kStack = size_t(1) << 20;
#endif

struct Pool {
  std::vector<char*> free;
  ~Pool() {
    for (char* stack : free) munmap(stack - kPage, kStack + kPage);
  }
};
thread_local Pool pool;

char* take_stack() {
  if (!pool.free.empty()) {
    char* stack = pool.free.back();
    pool.free.pop_back();
    return stack;
  }
  void* memory = mmap(nullptr, kStack + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);  // where a stack that overflows ends
  return static_cast<char*>(memory) + kPage;
}

}  // namespace

size_t Fiber::bytes() { return kStack; }

Fiber::Fiber(void (*entry)()) : stack_(take_stack()) {
#ifdef HOST_ASAN
  __asan_unpoison_memory_region(stack_, kStack);
#endif
  void** top = reinterpret_cast<void**>(stack_ + kStack);
  *--top = nullptr;  // entry finds the stack as a call leaves it, and never returns
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
#ifdef HOST_MSAN
  __msan_unpoison(top, 64);
#endif
#ifdef ESIMD_HOST_TSAN
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  stack_pointer_ = top;
}

Fiber::~Fiber() {
#ifdef ESIMD_HOST_TSAN
  __tsan_destroy_fiber(sanitizer_fiber_);
#endif
  pool.free.push_back(stack_);
}

__attribute__((noinline)) void Fiber::resume() {
#ifdef HOST_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, kStack);
#endif
#ifdef ESIMD_HOST_TSAN
  sanitizer_resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_fiber_, 0);
#endif
  esimd_host_switch(&resumer_, stack_pointer_);
#ifdef HOST_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::entered() {
#ifdef HOST_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &resumer_stack_, &resumer_bytes_);
#endif
}

__attribute__((noinline)) void Fiber::suspend([[maybe_unused]] bool last) {
#ifdef HOST_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &sanitizer_fiber_, resumer_stack_, resumer_bytes_);
#endif
#ifdef ESIMD_HOST_TSAN
  __tsan_switch_to_fiber(sanitizer_resumer_, 0);
#endif
  esimd_host_switch(&stack_pointer_, resumer_);
#ifdef HOST_ASAN
  __sanitizer_finish_switch_fiber(sanitizer_fiber_, &resumer_stack_, &resumer_bytes_);
#endif
}

}  // namespace esimd_host
