#include "report.hpp"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <sstream>
#include <tuple>

namespace esimd_host {

namespace {

using Key = std::tuple<std::string, std::string, const void*, const void*, bool>;
struct Counted {
  Finding first;
  uint64_t count;
};

std::mutex mutex;
std::map<Key, Counted>& findings() {
  static auto& all = *new std::map<Key, Counted>;
  return all;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

void write(std::ostream& out, const Party& party) {
  Dl_info library{};
  if (party.code) dladdr(party.code, &library);
  // A return address is one past the call: the line before is meant.
  const auto offset = library.dli_fbase
                          ? static_cast<const char*>(party.code) - static_cast<const char*>(library.dli_fbase) - 1
                          : 0;
  out << "{\"file\":" << quoted(library.dli_fname ? library.dli_fname : "") << ",\"offset\":" << offset
      << ",\"group\":" << party.group << ",\"item\":" << party.item << ",\"did\":" << quoted(party.did) << "}";
}

}  // namespace

void report(const Finding& finding) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Key key{finding.kind, finding.subject, finding.now.code, finding.before.code, finding.same_value};
  const auto [place, fresh] = findings().try_emplace(key, Counted{finding, 0});
  ++place->second.count;
}

std::string take_reports() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::ostringstream out;
  out << "[";
  const char* comma = "";
  for (const auto& [key, counted] : findings()) {
    const Finding& finding = counted.first;
    out << comma << "{\"kind\":" << quoted(finding.kind) << ",\"subject\":" << quoted(finding.subject)
        << ",\"detail\":" << quoted(finding.detail) << ",\"count\":" << counted.count
        << ",\"same_value\":" << (finding.same_value ? "true" : "false") << ",\"now\":";
    write(out, finding.now);
    out << ",\"before\":";
    write(out, finding.before);
    out << "}";
    comma = ",";
  }
  out << "]";
  findings().clear();
  return out.str();
}

}  // namespace esimd_host
