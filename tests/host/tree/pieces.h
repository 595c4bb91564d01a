// What the test kernels have in common: they read floats and write floats, and are found by name.
#pragma once
#include <sycl/sycl.hpp>
#include <sycl/ext/intel/esimd.hpp>
#include <sycl/ext/intel/esimd/xmx/dpas.hpp>
#include <sycl/ext/intel/experimental/esimd/memory.hpp>

#include <cstdint>
#include <cstring>

using namespace sycl::ext::intel::esimd;
namespace xesimd = sycl::ext::intel::experimental::esimd;
namespace xmx = sycl::ext::intel::esimd::xmx;
using fp16 = sycl::half;
using bf16 = sycl::ext::oneapi::bfloat16;

template <class Kernel>
void launch(sycl::queue& queue, const float* in, float* out, int groups, int items) {
  queue.submit([&](sycl::handler& handler) {
    handler.parallel_for(sycl::nd_range<1>(groups * items, items), Kernel{in, out});
  });
}

// A kernel: `in`, `out` and the item are at hand in its body.
#define KERNEL(NAME)                                              \
  struct NAME {                                                   \
    const float* in;                                              \
    float* out;                                                   \
    void operator()(sycl::nd_item<1> item) const SYCL_ESIMD_KERNEL; \
  };                                                              \
  inline void NAME::operator()([[maybe_unused]] sycl::nd_item<1> item) const

#define FOUND(NAME, GROUPS, ITEMS)                       \
  if (std::strcmp(name, #NAME) == 0) {                   \
    launch<NAME>(queue, in, out, GROUPS, ITEMS);         \
    return true;                                         \
  }

bool run_register_piece(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_memory_piece(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_matrix_piece(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_shared_piece(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_defect(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_order(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_order_of_items(sycl::queue& queue, const char* name, const float* in, float* out);
bool run_value(sycl::queue& queue, const char* name, const float* in, float* out);
