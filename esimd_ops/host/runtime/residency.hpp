// What was launched, and how many groups of each kernel may be alive at once where the schedule says "resident=card".
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "../include/esimd_host/runtime.hpp"

namespace esimd_host {

void launched(const Launch&);
void uses_local(const Launch&, size_t bytes);

// Groups of `items` work-items of the kernel; 0 where nothing was told, which means all.
void set_residency(const std::string& kernel, size_t items, uint32_t groups);
uint32_t residency(const Launch&);

// JSON: [{"name", "groups", "items", "local"}, ...], once a kernel and size of group, since the last time.
std::string take_launches();

}  // namespace esimd_host
