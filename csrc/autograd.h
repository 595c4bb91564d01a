// What autograd has to know of an operator that writes its arguments and has no derivative.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace esimd_ops {

// For the dispatch key Autograd, boxed. Does what torch's own in-place operators do: an argument that requires grad is
// refused (unless under no_grad), and the version of each written tensor rises, so that a backward() which needs the
// values from before the write raises an error instead of using the new ones.
void without_derivative(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace esimd_ops
