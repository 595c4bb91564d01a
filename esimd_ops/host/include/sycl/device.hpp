// sycl::device, platform, context and properties: one device, which says of itself what kernels ask before they choose a way.
#pragma once
#include <cassert>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "range.hpp"

namespace sycl {

enum class errc { success, runtime, kernel, accessor, nd_range, event, kernel_argument, build, invalid, memory_allocation,
                  platform, profiling, feature_not_supported, kernel_not_supported, backend_mismatch };
class exception : public std::runtime_error {
 public:
  explicit exception(const std::string& words) : std::runtime_error(words) {}
  exception(std::error_code, const std::string& words) : std::runtime_error(words) {}
};
inline std::error_code make_error_code(errc code) { return {static_cast<int>(code), std::generic_category()}; }
using exception_list = std::vector<std::exception_ptr>;
using async_handler = void (*)(exception_list);

enum class backend { opencl, ext_oneapi_level_zero, ext_oneapi_cuda, ext_oneapi_hip, ext_intel_esimd_emulator };
enum class aspect { cpu, gpu, accelerator, custom, fp16, fp64, atomic64, online_compiler, queue_profiling,
                    usm_device_allocations, usm_host_allocations, usm_shared_allocations, usm_system_allocations,
                    usm_atomic_host_allocations, usm_atomic_shared_allocations, ext_intel_esimd, ext_intel_free_memory };

// What is asked of a device: a type for each question, whose answer is made by it.
namespace info {
namespace device {
#define ESIMD_HOST_FACT(NAME, TYPE, VALUE)                 \
  struct NAME {                                            \
    using return_type = TYPE;                              \
    static return_type answer() { return VALUE; }          \
  };
ESIMD_HOST_FACT(name, std::string, "Intel(R) Arc(TM) B580 Graphics, on the host")
ESIMD_HOST_FACT(vendor, std::string, "Intel(R) Corporation")
ESIMD_HOST_FACT(vendor_id, uint32_t, 0x8086)
ESIMD_HOST_FACT(driver_version, std::string, "host")
ESIMD_HOST_FACT(version, std::string, "host")
ESIMD_HOST_FACT(max_compute_units, uint32_t, 160)
ESIMD_HOST_FACT(max_work_group_size, size_t, 1024)
ESIMD_HOST_FACT(local_mem_size, uint64_t, 128 * 1024)
ESIMD_HOST_FACT(global_mem_size, uint64_t, uint64_t(12) << 30)
ESIMD_HOST_FACT(global_mem_cache_size, uint64_t, 18 << 20)
ESIMD_HOST_FACT(max_mem_alloc_size, uint64_t, uint64_t(12) << 30)
ESIMD_HOST_FACT(sub_group_sizes, std::vector<size_t>, (std::vector<size_t>{16}))
#undef ESIMD_HOST_FACT
}  // namespace device
namespace event_profiling {
struct command_submit { using return_type = uint64_t; };
struct command_start { using return_type = uint64_t; };
struct command_end { using return_type = uint64_t; };
}  // namespace event_profiling
}  // namespace info

namespace ext::intel::info::device {
struct gpu_eu_count { using return_type = uint32_t; static uint32_t answer() { return 160; } };
struct gpu_eu_simd_width { using return_type = uint32_t; static uint32_t answer() { return 16; } };
struct gpu_slices { using return_type = uint32_t; static uint32_t answer() { return 5; } };
struct gpu_subslices_per_slice { using return_type = uint32_t; static uint32_t answer() { return 4; } };
struct gpu_eu_count_per_subslice { using return_type = uint32_t; static uint32_t answer() { return 8; } };
struct gpu_hw_threads_per_eu { using return_type = uint32_t; static uint32_t answer() { return 8; } };
struct device_id { using return_type = uint32_t; static uint32_t answer() { return 0xE20B; } };
}  // namespace ext::intel::info::device
namespace ext::oneapi::experimental {
enum class architecture { unknown, intel_gpu_pvc, intel_gpu_bmg_g21, intel_gpu_bmg_g31, intel_gpu_lnl_m, intel_gpu_ptl_h, intel_gpu_ptl_u,
                          intel_gpu_wcl };
namespace info::device {
struct architecture {
  using return_type = experimental::architecture;
  static return_type answer() { return experimental::architecture::intel_gpu_bmg_g21; }
};
}  // namespace info::device
}  // namespace ext::oneapi::experimental

namespace property {
namespace queue {
struct in_order {};
struct enable_profiling {};
}  // namespace queue
struct no_init {};
}  // namespace property
inline constexpr property::no_init no_init{};
struct property_list {
  template <class... Property>
  property_list(Property...) {}
};

class context;
class platform;
struct gpu_selector {};
struct default_selector {};
inline int gpu_selector_v(const class device&) { return 1; }
inline int default_selector_v(const class device&) { return 1; }
inline int cpu_selector_v(const class device&) { return -1; }

class device {
 public:
  device() = default;
  template <class Selector>
  explicit device(const Selector&) {}

  template <class Fact>
  typename Fact::return_type get_info() const { return Fact::answer(); }
  bool has(aspect asked) const { return asked != aspect::cpu && asked != aspect::custom && asked != aspect::accelerator; }
  bool has_extension(const std::string&) const { return false; }
  backend get_backend() const { return backend::ext_oneapi_level_zero; }
  bool is_gpu() const { return true; }
  bool is_cpu() const { return false; }
  bool is_accelerator() const { return false; }
  platform get_platform() const;
  bool ext_oneapi_architecture_is(ext::oneapi::experimental::architecture asked) const {
    return asked == ext::oneapi::experimental::architecture::intel_gpu_bmg_g21;
  }
  friend bool operator==(const device&, const device&) { return true; }
};

class platform {
 public:
  static std::vector<platform> get_platforms() { return {platform()}; }
  std::vector<device> get_devices() const { return {device()}; }
  backend get_backend() const { return device().get_backend(); }
};
inline platform device::get_platform() const { return {}; }

class context {
 public:
  context() = default;
  explicit context(const device&) {}
  std::vector<device> get_devices() const { return {device()}; }
  friend bool operator==(const context&, const context&) { return true; }
};

// Kernels are asked for one thing: how large their groups may be.
namespace info::kernel_device_specific {
struct work_group_size {
  using return_type = size_t;
  static return_type answer() { return device::max_work_group_size::answer(); }
};
}  // namespace info::kernel_device_specific
enum class bundle_state { input, object, executable };
struct kernel_id {};
template <class Kernel>
kernel_id get_kernel_id() { return {}; }
struct kernel {
  template <class Fact>
  typename Fact::return_type get_info(const device&) const { return Fact::answer(); }
};
struct kernel_bundle {
  kernel get_kernel(const kernel_id&) const { return {}; }
};
template <bundle_state>
kernel_bundle get_kernel_bundle(const context&, const std::vector<kernel_id>&) { return {}; }
template <bundle_state>
kernel_bundle get_kernel_bundle(const context&, const std::vector<device>&, const std::vector<kernel_id>&) { return {}; }

}  // namespace sycl
