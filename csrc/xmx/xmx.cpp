#include "xmx/xmx.h"

#include <algorithm>

namespace esimd_ops::xmx {

// Rows of 64 to 2^24 bytes, a multiple of 16; up to 2^24 of them; an address that is a multiple of 64. From Intel's
// extension of SYCL for ESIMD, lsc_load_2d.
bool fits(Queue queue, std::initializer_list<Rows> matrices) {
  return has_matrix_engines(queue) && std::all_of(matrices.begin(), matrices.end(), [](const Rows& rows) {
           constexpr int64_t kMost = 1 << 24;
           const int64_t bytes = rows.tensor.size(-1) * rows.tensor.element_size();
           return bytes >= 64 && bytes <= kMost && bytes % 16 == 0 && rows.count <= kMost &&
                  reinterpret_cast<uintptr_t>(rows.tensor.const_data_ptr()) % 64 == 0;
         });
}

}  // namespace esimd_ops::xmx
