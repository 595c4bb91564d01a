// Kernels whose machine code is known to have one thing each: tests say which. Lines with a mark are asserted.
#include <sycl/ext/intel/esimd.hpp>
#include <sycl/sycl.hpp>

namespace esimd = sycl::ext::intel::esimd;
using Matrix = sycl::half;

struct Spills;
struct Divides;
struct DividesOnce;
struct Multiplies;
struct Plain;
struct Shares;

void plant(sycl::queue& queue, float* floats, int64_t* numbers, Matrix* halves, int64_t count) {
  // Three times as many numbers as the registers hold, all alive at once.
  queue.parallel_for<Spills>(sycl::nd_range<1>(64, 1), [=](sycl::nd_item<1>) SYCL_ESIMD_KERNEL {
    constexpr int kRows = 96;
    esimd::simd<float, 64> rows[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) rows[i] = esimd::block_load<float, 64>(floats + i * 64);
#pragma unroll
    for (int i = 0; i < kRows; ++i) esimd::block_store(floats + i * 64, rows[i] * rows[kRows - 1 - i]);
  });
  queue.parallel_for<Divides>(sycl::nd_range<1>(64, 16), [=](sycl::nd_item<1> item) {
    const int64_t at = item.get_global_linear_id();
    int64_t sum = 0;
    for (int64_t i = 1; i < count; ++i) sum += numbers[at] / (count - i);  // 64-bit division
    numbers[at] = sum;
  });
  queue.parallel_for<DividesOnce>(sycl::nd_range<1>(64, 16), [=](sycl::nd_item<1> item) {
    const int64_t at = item.get_global_linear_id();
    numbers[at] = numbers[at] / count + numbers[at] / 8;
  });
  queue.parallel_for<Multiplies>(sycl::nd_range<1>(64, 1), [=](sycl::nd_item<1>) SYCL_ESIMD_KERNEL {
    auto left = esimd::block_load<Matrix, 128>(halves);
    auto right = esimd::block_load<Matrix, 256>(halves + 128);
    esimd::simd<float, 128> sum = esimd::xmx::dpas<8, 8, float>(esimd::simd<float, 128>(0.f), right, left);
    esimd::block_store(floats, sum);
  });
  queue.parallel_for<Plain>(sycl::nd_range<1>(64, 16), [=](sycl::nd_item<1> item) {
    floats[item.get_global_linear_id()] *= 2.f;
  });
  queue.submit([&](sycl::handler& handler) {
    sycl::local_accessor<float, 1> local(16384, handler);
    handler.parallel_for<Shares>(
        sycl::nd_range<1>(64, 32), [=](sycl::nd_item<1> item) [[sycl::reqd_work_group_size(32)]] {
          const auto at = item.get_local_linear_id();
          local[at] = floats[at];
          sycl::group_barrier(item.get_group());
          floats[at] = local[31 - at];
        });
  });
}
