// Matrix products for any number of tokens. The original library leaves rows from the 64th on unwritten (int4), and
// decodes the subnormals of E4M3 or not as M and N have it (fp8); here every M is computed, and by one decoder.
#include "gemm/gemm.h"

#include <ATen/ceil_div.h>

#include <string>

#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace gemm {

Sizes check_input(const Checks& check, const at::Tensor& input, const at::Tensor& weight) {
  check("input", input).dtype(at::kHalf).rows().expect(input.dim() == 2, "shape [M, K], found ", input.sizes());
  check("weight", weight).expect(weight.dim() == 2, "two dimensions, found shape ", weight.sizes());
  return {input.size(0), weight.size(0), input.size(1)};
}

void check_output(const Checks& check, const at::Tensor& output, const Sizes& sizes) {
  check("output", output).dtype(at::kHalf).shape({sizes.M, sizes.N});
}

namespace {

// How several tokens are multiplied: the tile, and where a token and an element of it lie once laid out.
struct Plan {
  std::string kernel;
  int64_t tokens;  // of a tile
  int64_t rows;    // of a work-group
  int64_t group_size;
  bool each_lane_has_tokens;
};

Plan plan(const Kind& kind, int64_t M) {
  const std::string types = std::string(kind.row) + ", " + kind.scale;
  if (M <= 2 * FewTokens::kTokens)
    return {"gemm/few_tokens<" + types + ">", FewTokens::kTokens, kSubGroups * FewTokens::kRows, kGroupSize, false};
  if (M <= ManyTokens<2>::kTokens)
    return {"gemm/many_tokens<" + types + ", 2>", ManyTokens<2>::kTokens, ManyTokens<2>::kRows, kSubGroupSize, true};
  return {"gemm/many_tokens<" + types + ", 4>", ManyTokens<4>::kTokens, ManyTokens<4>::kRows, kSubGroupSize, true};
}

}  // namespace

void run(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const Sizes& sizes) {
  const auto& [M, N, K] = sizes;
  if (M == 1) {
    const std::string name = std::string("gemm/one_token<") + kind.row + ", " + kind.scale + ">";
    nd_launch(queue(input), {at::ceil_div<int64_t>(N, kSubGroups * OneToken::kRows), kGroupSize}, kernel(name),
              input.const_data_ptr(), weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), N, K);
    return;
  }

  const Plan chosen = plan(kind, M);
  const int64_t token_blocks = at::ceil_div(M, chosen.tokens);
  const int64_t tokens = token_blocks * chosen.tokens;
  const int64_t steps = at::ceil_div<int64_t>(K, kStep);
  // A pitch that is a power of two would put all tokens into the same few sets of a cache.
  const int64_t pitch = chosen.each_lane_has_tokens ? tokens : steps * kStep + kSubGroupSize;
  const int64_t lines = chosen.each_lane_has_tokens ? steps * kStep : tokens;
  const at::Tensor activations = input.new_empty({lines, pitch}, input.options().dtype(at::kFloat));
  const Range range = chosen.each_lane_has_tokens ? Range{tokens / kSubGroupSize * steps, kSubGroupSize}
                                                  : Range{tokens, kGroupSize};
  const char* layout = chosen.each_lane_has_tokens ? "gemm/columns_of_tokens<" : "gemm/lines_of_tokens<";
  nd_launch(queue(input), range, kernel(std::string(layout) + kind.order + ">"), input.const_data_ptr(),
            activations.mutable_data_ptr(), M, K, steps, pitch);
  nd_launch(queue(input), {at::ceil_div(N, chosen.rows) * token_blocks, chosen.group_size}, kernel(chosen.kernel),
            activations.const_data_ptr(), weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), M,
            N, K, token_blocks, pitch);
}

}  // namespace gemm

at::Tensor gemm_int4_pgrp(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  const Checks check("esimd_gemm_int4_pgrp", input);
  const gemm::Sizes sizes = gemm::check_input(check, input, weight);
  const auto [M, N, K] = sizes;
  check.expect(K % kInt4Group == 0, "input", "a multiple of ", kInt4Group, " columns, found ", K);
  check("weight", weight).dtype(at::kByte).shape({N, K / 2}).aligned(sizeof(uint32_t));
  check("weight_scale", weight_scale).dtype(at::kHalf).shape({N, K / kInt4Group});
  gemm::check_output(check, output, sizes);
  check.apart({{"output", output}}, {{"input", input}, {"weight", weight}, {"weight_scale", weight_scale}});

  gemm::run({"NibbleOrder", "Int4RoundedRow", "Unscaled"}, input, weight, weight_scale, output, sizes);
  return output;
}

at::Tensor gemm_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  const Checks check("esimd_gemm_fp8_pert", input);
  const gemm::Sizes sizes = gemm::check_input(check, input, weight);
  const auto [M, N, K] = sizes;
  check("weight", weight).fp8().shape({N, K});
  check("weight_scale", weight_scale).dtype(at::kFloat).elements(1);
  gemm::check_output(check, output, sizes);
  check.apart({{"output", output}}, {{"input", input}, {"weight", weight}, {"weight_scale", weight_scale}});

  const bool e5m2 = weight.scalar_type() == at::kFloat8_e5m2;
  gemm::run({"InOrder", e5m2 ? "Fp8Row<E5M2Flush>" : "Fp8Row<E4M3>", "TensorScale"}, input, weight, weight_scale, output,
            sizes);
  return output;
}

at::Tensor gemm_fp8_blockscale(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output,
                               int64_t block_n, int64_t block_k) {
  const Checks check("esimd_gemm_fp8_blockscale", input);
  check.expect(block_n == kFp8Block, "block_n", kFp8Block, ", found ", block_n);
  check.expect(block_k == kFp8Block, "block_k", kFp8Block, ", found ", block_k);
  const gemm::Sizes sizes = gemm::check_input(check, input, weight);
  const auto [M, N, K] = sizes;
  check.expect(K % kFp8Block == 0, "input", "a multiple of ", kFp8Block, " columns, found ", K);
  check("weight", weight)
      .expect(weight.scalar_type() == at::kFloat8_e4m3fn || weight.scalar_type() == at::kByte,
              "dtype Float8_e4m3fn or Byte, found ", weight.scalar_type())
      .shape({N, K});
  check("weight_scale", weight_scale).dtype(at::kFloat).shape({at::ceil_div<int64_t>(N, kFp8Block), K / kFp8Block});
  gemm::check_output(check, output, sizes);
  check.apart({{"output", output}}, {{"input", input}, {"weight", weight}, {"weight_scale", weight_scale}});

  gemm::run({"InOrder", "Fp8BlockRow", "Unscaled"}, input, weight, weight_scale, output, sizes);
  return output;
}

}  // namespace esimd_ops
