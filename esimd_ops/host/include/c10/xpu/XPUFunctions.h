// Stands in for torch's XPU devices: one, whose properties are those of sycl::device.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

namespace c10::xpu {

struct DeviceProp {
  std::string name = sycl::info::device::name::answer(), vendor = sycl::info::device::vendor::answer();
  std::string driver_version = "host", version = "host", platform_name = "host";
  uint32_t max_compute_units = sycl::info::device::max_compute_units::answer();
  size_t max_work_group_size = sycl::info::device::max_work_group_size::answer();
  uint64_t local_mem_size = sycl::info::device::local_mem_size::answer();
  uint64_t global_mem_size = sycl::info::device::global_mem_size::answer();
  uint64_t max_mem_alloc_size = global_mem_size;
  std::vector<size_t> sub_group_sizes = sycl::info::device::sub_group_sizes::answer();
  uint32_t max_num_sub_groups = 64;
  uint32_t gpu_eu_count = 160, gpu_eu_simd_width = 16, gpu_hw_threads_per_eu = 8, gpu_eu_count_per_subslice = 8;
  bool has_fp16 = true, has_fp64 = true, has_atomic64 = true;
  // Of 16 lanes of a byte, as the Level Zero adapter of SYCL's runtime computes them.
  uint32_t preferred_vector_width_char = 16, preferred_vector_width_short = 8, preferred_vector_width_int = 4;
  uint32_t preferred_vector_width_long = 2, preferred_vector_width_float = 4, preferred_vector_width_double = 2;
  uint32_t preferred_vector_width_half = 8, native_vector_width_char = 16, native_vector_width_short = 8;
  uint32_t native_vector_width_int = 4, native_vector_width_long = 2, native_vector_width_float = 4;
  uint32_t native_vector_width_double = 2, native_vector_width_half = 8;
};

inline DeviceIndex device_count() { return 1; }
inline DeviceIndex current_device() { return 0; }
inline void set_device(DeviceIndex) {}
inline DeviceIndex exchange_device(DeviceIndex) { return 0; }
inline void get_device_properties(DeviceProp* properties, DeviceIndex) { *properties = DeviceProp(); }
inline sycl::device& get_raw_device(DeviceIndex) {
  static sycl::device only;
  return only;
}
inline sycl::context& get_device_context() {
  static sycl::context only;
  return only;
}

}  // namespace c10::xpu
