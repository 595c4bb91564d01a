// A kernel whose local memory, known at compile time, leaves room for one group a core; and a loop of narrow loads.
#include <sycl/ext/intel/esimd.hpp>
#include <sycl/sycl.hpp>

#define LARGE \
  Large_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called_longer_than_what_a_file_may_be_called

namespace esimd = sycl::ext::intel::esimd;

void plant(sycl::queue& queue, float* floats, int count) {
  queue.parallel_for<struct LARGE>(sycl::nd_range<1>(64, 16), [=](sycl::nd_item<1> item) SYCL_ESIMD_KERNEL {
    esimd::slm_init<96 * 1024>();
    const int at = item.get_local_linear_id() * 256;
    esimd::slm_block_store<float, 64>(at, esimd::block_load<float, 64>(floats + at));
    esimd::barrier();
    esimd::block_store(floats + at, esimd::slm_block_load<float, 64>(3840 - at));
  });
  queue.parallel_for<struct Narrow>(sycl::nd_range<1>(64, 1), [=](sycl::nd_item<1>) SYCL_ESIMD_KERNEL {
    esimd::simd<float, 8> sum = 0.f;
    for (int i = 0; i < count; ++i) sum += esimd::block_load<float, 8>(floats + i * 8);  // narrow
    esimd::block_store(floats, sum);
  });
}
