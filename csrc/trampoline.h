// The guard's twins in C++: an operator that calls another one, at the price of a second dispatch.
#pragma once

#include <string>

namespace esimd_ops {

// What becomes of the results of the operator that is called.
enum class Results { kDrop, kClone };

// Implements the operator `twin`, which is defined and takes the same arguments as `op`, on every backend: it calls
// `op` and gives nothing, or clones of its results. Both as "namespace::name"; `overload` is that of `op`. For the life
// of the process: compiled graphs call twins.
void implement_twin(const std::string& twin, const std::string& op, const std::string& overload, Results results);

}  // namespace esimd_ops
