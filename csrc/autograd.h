// What autograd has to know of an operator that writes its arguments and has no derivative.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace [[gnu::visibility("hidden")]] esimd_ops {  // for no other library: its functions need no slot

// For the dispatch key Autograd, boxed. Does what torch's own in-place operators do: an argument that requires grad is
// refused (unless under no_grad), and the version of each written tensor rises, so that a backward() which needs the
// values from before the write raises an error instead of using the new ones.
void without_derivative(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// The same for an operator "namespace::name.overload" of somebody else that has no kernel for Autograd; `written` are
// the positions of the arguments that it writes, whatever its schema says. `composite`: its one kernel stands for all
// keys, so that gradients may come from what it calls, and none is refused. As long as the result lives.
struct Registration {
  std::unique_ptr<torch::Library> library;
};
//
// Where a twin calls it, autograd was told by the twin's own schema: nothing is refused then.
Registration give_versions(const std::string& op, std::vector<size_t> written, bool composite);

// As long as this lives, the next call of `op` in this thread is a twin's.
class CalledByTwin {
 public:
  explicit CalledByTwin(const c10::OperatorHandle& op);
  ~CalledByTwin();
  CalledByTwin(const CalledByTwin&) = delete;
  CalledByTwin& operator=(const CalledByTwin&) = delete;

 private:
  const c10::OperatorHandle* before_;
};

}  // namespace esimd_ops
