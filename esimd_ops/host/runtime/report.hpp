// What was found, once a kind, place and pair of code addresses, with a count and the first instance.
#pragma once
#include <cstdint>
#include <string>

namespace esimd_host {

struct Party {
  const void* code = nullptr;  // a return address; the reader of the report finds the source line
  uint32_t group = 0, item = 0;
  const char* did = "";
};

struct Finding {
  std::string kind;     // "race", "slm-race", "out-of-bounds", …
  std::string subject;  // the tensor, or what else it is about
  std::string detail;
  Party now, before;
  bool same_value = false;  // the write stored what was there
};

void report(const Finding&);
// All findings since the last call, as a JSON array.
std::string take_reports();

}  // namespace esimd_host
