// Which formats a matrix operand of dpas may have.
#pragma once
#include "../types.hpp"

namespace sycl::ext::intel::esimd::xmx {

enum class dpas_argument_type { Invalid = 0, u1 = 1, s1 = 2, u2 = 3, s2 = 4, u4 = 5, s4 = 6, u8 = 7, s8 = 8, bf16 = 9, fp16 = 10, tf32 = 12 };

}  // namespace sycl::ext::intel::esimd::xmx
