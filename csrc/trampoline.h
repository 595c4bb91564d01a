// The guard's twins in C++: an operator that calls another one, at the price of a second dispatch.
#pragma once

#include <string>
#include <vector>

namespace [[gnu::visibility("hidden")]] esimd_ops {  // for no other library: its functions need no slot

// What becomes of each result of the operator that is called.
enum class Result { kDrop, kKeep, kClone };

// Implements the operator `twin`, which is defined and takes the same arguments as `op`, on every backend: it calls
// `op` and gives the results that are not dropped, in order. Both as "namespace::name"; `overload` is that of `op`;
// `results` has one for each result of `op`. For the life of the process: compiled graphs call twins.
void implement_twin(const std::string& twin, const std::string& op, const std::string& overload,
                    std::vector<Result> results);

}  // namespace esimd_ops
