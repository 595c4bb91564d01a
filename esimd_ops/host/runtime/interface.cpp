// What Python calls.
#include <string>

#include "memory.hpp"
#include "report.hpp"
#include "residency.hpp"
#include "schedule.hpp"

namespace esimd_host {
extern bool checking;
}

extern "C" {

// Words of a schedule; nullptr where they were understood, else what was wrong.
const char* esimd_host_schedule(const char* words) {
  static std::string wrong;
  wrong = esimd_host::schedule().parse(words);
  return wrong.empty() ? nullptr : wrong.c_str();
}

// 1 for a build whose kernels tell of their accesses.
int esimd_host_has_checks() {
#ifdef ESIMD_HOST_CHECKS
  return 1;
#else
  return 0;
#endif
}

void esimd_host_check(int on) { esimd_host::checking = on; }

// From now on, so that buffers which an operator keeps are known in later calls.
void esimd_host_track() { esimd_host::track_allocations(true); }

void esimd_host_watch(const char* name, const void* data, size_t bytes, size_t granule, int read_only, int unwritten) {
  esimd_host::memory().watch(name, data, bytes, granule, read_only, unwritten);
}

void esimd_host_unwatch() { esimd_host::memory().unwatch(); }

const char* esimd_host_reports() {
  static std::string text;
  text = esimd_host::take_reports();
  return text.c_str();
}

// What was launched since the last time.
const char* esimd_host_launches() {
  static std::string text;
  text = esimd_host::take_launches();
  return text.c_str();
}

// How many groups of a kernel are alive at once where the schedule says "resident=card".
void esimd_host_residency(const char* kernel, size_t items, unsigned groups) {
  esimd_host::set_residency(kernel, items, groups);
}

}  // extern "C"
