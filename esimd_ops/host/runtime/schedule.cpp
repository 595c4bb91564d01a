#include "schedule.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace esimd_host {

namespace {

bool number(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && value >= 0;
}

}  // namespace

std::string Schedule::parse(const std::string& words) {
  Schedule made;
  std::istringstream stream(words);
  for (std::string word; std::getline(stream, word, ',');) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    double value = 0;
    if (equals != std::string::npos && !number(word.substr(equals + 1), value) && word != "resident=all" && word != "resident=card") {
      return "'" + word + "': expected a number that is not negative";
    }
    if (word == "ascending") made.groups = Order::ascending;
    else if (word == "descending") made.groups = Order::descending;
    else if (word == "random") made.groups = Order::random;
    else if (word == "serial") made.items = Items::serial;
    else if (word == "lockstep") made.items = Items::lockstep;
    else if (word == "shuffled") made.items = Items::random;
    else if (word == "resident=card") made.card = true;
    else if (key == "resident") made.resident = static_cast<uint32_t>(value);
    else if (key == "stagger") made.stagger = static_cast<uint32_t>(value);
    else if (key == "preempt" && value <= 1) made.preempt = value;
    else if (key == "seed") made.seed = static_cast<uint64_t>(value);
    else if (key == "threads" && value >= 1) made.threads = static_cast<uint32_t>(value);
    else
      return "'" + word + "': expected ascending, descending or random (groups); serial, lockstep or shuffled (items); "
             "resident=N, all or card, stagger=N, preempt=0 to 1, seed=N, threads=N";
  }
  *this = made;
  return "";
}

Schedule& schedule() {
  static Schedule value = [] {
    Schedule made;
    if (const char* words = std::getenv("ESIMD_HOST_SCHEDULE")) {
      if (const std::string wrong = made.parse(words); !wrong.empty()) {
        throw std::runtime_error("ESIMD_HOST_SCHEDULE: " + wrong);
      }
    }
    return made;
  }();
  return value;
}

}  // namespace esimd_host
