// The kernels of the ahead-of-time build, by the names that kernel() is asked for; the run-time build compiles them.
#pragma once

#include <string_view>
#include <sycl/sycl.hpp>

namespace esimd_ops {

// Called while the library loads, once for each AHEAD_OF_TIME line of a .sycl file.
bool register_aot_kernel(std::string_view name, sycl::kernel_id id);

}  // namespace esimd_ops

#define ESIMD_OPS_CONCAT_(a, b) a##b
#define ESIMD_OPS_CONCAT(a, b) ESIMD_OPS_CONCAT_(a, b)
#define ESIMD_OPS_AOT_KERNEL(name, ...)                                                         \
  [[maybe_unused]] static const bool ESIMD_OPS_CONCAT(registered_, __COUNTER__) =              \
      esimd_ops::register_aot_kernel(name, sycl::ext::oneapi::experimental::get_kernel_id<__VA_ARGS__>());
