// What the stand-in headers know of the runtime: launching a kernel, the work-item at work, barriers, shared local memory,
// and one call before every memory operation. Knows no SYCL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

// With ESIMD_HOST_CHECKS every memory operation of a kernel is told to the runtime. Operations on registers are then kept
// out of the compiler's own instrumentation, and operations on memory are inlined into the kernel's line.
#ifdef ESIMD_HOST_CHECKS
#define ESIMD_HOST_REGISTERS __attribute__((no_sanitize("thread")))
#define ESIMD_HOST_MEMORY __attribute__((always_inline))
#else
#define ESIMD_HOST_REGISTERS
#define ESIMD_HOST_MEMORY
#endif

namespace esimd_host {

// Fills registers and memory that nobody has written: a NaN in half, bfloat16, float and double, and odd as an integer.
inline constexpr uint16_t kPoison = 0x7FF1;

struct Launch {
  size_t groups[3], locals[3];  // in groups; in work-items of a group; slowest first
  size_t local_bytes;           // of local accessors
  void (*body)(const void* kernel);
  const void* kernel;
  size_t kernel_bytes;
  const char* name;  // of the kernel, as the compiler spells its type
};

struct Group {
  const Launch* launch;
  size_t id[3];
  uint32_t linear;
  char* slm = nullptr;
  size_t slm_bytes = 0;
  char* local = nullptr;  // what local accessors point into
};

struct Item {
  Group* group = nullptr;
  uint32_t index = 0;
  size_t local[3] = {};
};

enum class Access : uint8_t { read, write, atomic, atomic_read };

extern thread_local Item* current __attribute__((tls_model("initial-exec")));
extern thread_local bool interleaved __attribute__((tls_model("initial-exec")));  // others may run at memory operations

void launch(const Launch&);
void yield();
void spin();
// `site` tells one barrier of the source from another: a compiler may make several calls of one.
void barrier(size_t site);
void sub_group_barrier(uint32_t size);
void slm_init(size_t bytes);
void* group_memory(size_t site, size_t bytes);  // of the group at work, for one place of its kernel
[[noreturn]] void slm_fault(size_t offset, size_t bytes);
constexpr size_t kFileBits = 40;
inline size_t site(const char* file, unsigned line) { return size_t(file) ^ size_t(line) << kFileBits; }
void named_barrier_allocate(uint32_t count);
void named_barrier_signal(uint32_t id, bool producer, bool consumer, uint32_t producers, uint32_t consumers);
void named_barrier_wait(uint32_t id);

// The checks; each is told where it was called from by its return address.
void check_global(const void* address, size_t bytes, Access);
void check_stored(const void* address, const void* value, size_t bytes, size_t element);
char* check_slm(size_t offset, size_t bytes, Access);
void check_surface(const char* complaint);
void check_register(long index, long length);

// What this work-item did before a fence is seen by whoever sees an atomic update that it makes afterwards: by work-items of
// its group, or (`wide`) of others; of global memory, or of shared local memory.
void order(bool wide, bool global);
inline void fence([[maybe_unused]] bool wide, [[maybe_unused]] bool global) {
#ifdef ESIMD_HOST_CHECKS
  order(wide, global);
#endif
}

// What another work-item sees of this one's values while a group or a part of it works together: one slot an item.
void* exchange(const void* value, size_t bytes, uint32_t first, uint32_t last);

inline void give_way(Access access) {
  if (__builtin_expect(interleaved, 0)) yield();
  else if (access == Access::atomic || access == Access::atomic_read) spin();
}

ESIMD_HOST_MEMORY inline void on_global(const void* address, size_t bytes, Access access) {
#ifdef ESIMD_HOST_CHECKS
  check_global(address, bytes, access);
#else
  (void)address, (void)bytes;
  give_way(access);
#endif
}

// The address of shared local memory, or nullptr where the access was out of bounds and told as such.
ESIMD_HOST_MEMORY inline char* on_slm(size_t offset, size_t bytes, Access access) {
#ifdef ESIMD_HOST_CHECKS
  return check_slm(offset, bytes, access);
#else
  give_way(access);
  if (offset + bytes > current->group->slm_bytes) slm_fault(offset, bytes);
  return current->group->slm + offset;
#endif
}

// Copies that no instrumentation sees a second time.
#ifdef ESIMD_HOST_CHECKS
void copy(void* to, const void* from, size_t bytes);
#else
inline void copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace esimd_host
