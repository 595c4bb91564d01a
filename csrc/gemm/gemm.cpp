// Small-M matrix products, for any M: the original library leaves rows from the 64th on unwritten.
#include <ATen/ceil_div.h>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {

at::Tensor gemm_int4_pgrp(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  const Checks check("esimd_gemm_int4_pgrp", input);
  check("input", input)
      .dtype(at::kHalf)
      .rows()
      .expect(input.dim() == 2, "shape [M, K], found ", input.sizes())
      .expect(input.size(1) % kInt4Group == 0, "a multiple of ", kInt4Group, " columns, found ", input.size(1));
  const int64_t M = input.size(0);
  const int64_t K = input.size(1);
  check("weight", weight)
      .dtype(at::kByte)
      .expect(weight.dim() == 2 && weight.size(1) == K / 2, "shape [N, ", K / 2, "], found ", weight.sizes())
      .aligned(sizeof(uint32_t));
  const int64_t N = weight.size(0);
  check("weight_scale", weight_scale).dtype(at::kHalf).shape({N, K / kInt4Group});
  check("output", output)
      .dtype(at::kHalf)
      .shape({M, N})
      .apart_from({{"input", input}, {"weight", weight}, {"weight_scale", weight_scale}});

  // One token leaves registers for more weight rows.
  const bool one_token = M == 1;
  const int64_t row_blocks = at::ceil_div<int64_t>(N, kSubGroups * (one_token ? kGemvRows : kGemmRows));
  const int64_t token_blocks = one_token ? 1 : at::ceil_div<int64_t>(M, kGemmTokens);
  nd_launch(queue(input), {row_blocks * token_blocks, kGroupSize},
            kernel(one_token ? "gemm/gemm_int4<1, kGemvRows>" : "gemm/gemm_int4<kGemmTokens, kGemmRows>"),
            input.const_data_ptr(), weight.const_data_ptr(), weight_scale.const_data_ptr(), output.mutable_data_ptr(),
            M, N, K, row_blocks);
  return output;
}

}  // namespace esimd_ops
