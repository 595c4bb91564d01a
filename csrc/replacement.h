// This kit's operator in the place of another library's, at the dispatcher.
#pragma once

#include <torch/library.h>

#include <cstdint>
#include <memory>
#include <string>

namespace [[gnu::visibility("hidden")]] esimd_ops {  // for no other library: its functions need no slot

// While it lives, calls of `op` ("namespace::name", which need not exist yet) go to `ours`, an operator that writes the
// same arguments and returns nothing; `returned` is the position of the argument that `op` hands back where it returns
// anything, or -1. It stands at BackendSelect, the key that every call passes right before a device's kernel, under
// inference mode too. Calls that ours refuses, or for whose device it has no kernel, go to the original, counted.
class Replacement {
 public:
  Replacement(const std::string& op, const std::string& ours, int64_t returned);

  int64_t replaced() const;
  int64_t passed() const;
  std::string why() const;  // the last reason to pass a call on

  void remove() { library_.reset(); }

  struct State;

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<torch::Library> library_;
};

}  // namespace esimd_ops
