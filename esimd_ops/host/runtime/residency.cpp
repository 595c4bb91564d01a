#include "residency.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

namespace esimd_host {

namespace {

using Key = std::pair<std::string, size_t>;  // a kernel, and the work-items of its groups

struct Seen {
  size_t groups = 0, local = 0;
};

std::mutex mutex;
std::map<Key, Seen> seen;
std::map<Key, uint32_t> limits;

size_t product(const size_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

Key key(const Launch& launch) { return {launch.name, product(launch.locals)}; }

}  // namespace

void launched(const Launch& launch) {
  const std::lock_guard<std::mutex> lock(mutex);
  Seen& one = seen[key(launch)];
  one.groups = std::max(one.groups, product(launch.groups));
  one.local = std::max(one.local, launch.local_bytes);
}

void uses_local(const Launch& launch, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  Seen& one = seen[key(launch)];
  one.local = std::max(one.local, bytes + launch.local_bytes);
}

void set_residency(const std::string& kernel, size_t items, uint32_t groups) {
  const std::lock_guard<std::mutex> lock(mutex);
  limits[{kernel, items}] = groups;
}

uint32_t residency(const Launch& launch) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = limits.find(key(launch));
  return found == limits.end() ? 0 : found->second;
}

std::string take_launches() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::ostringstream text;
  text << '[';
  for (const auto& [one, facts] : seen) {
    text << (text.tellp() > 1 ? "," : "") << "{\"name\":\"" << one.first << "\",\"groups\":" << facts.groups
         << ",\"items\":" << one.second << ",\"local\":" << facts.local << '}';
  }
  text << ']';
  seen.clear();
  return text.str();
}

}  // namespace esimd_host
