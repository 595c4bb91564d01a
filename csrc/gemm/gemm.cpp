// Matrix products for any number of tokens. The original library leaves rows from the 64th on unwritten (int4), and
// decodes the subnormals of E4M3 or not as M and N have it (fp8); here every M is computed, and by one decoder.
#include "gemm/gemm.h"

#include <ATen/ceil_div.h>

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

void run(const char* kernel_name, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const Sizes& sizes) {
  const auto& [M, N, K] = sizes;
  const bool one_token = M == 1;
  const int64_t row_blocks = at::ceil_div<int64_t>(N, kSubGroups * (one_token ? OneToken::kRows : ManyTokens::kRows));
  const int64_t token_blocks = one_token ? 1 : at::ceil_div<int64_t>(M, ManyTokens::kTokens);
  nd_launch(queue(input), {row_blocks * token_blocks, kGroupSize}, kernel(kernel_name), input.const_data_ptr(),
            weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), M, N, K, token_blocks);
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

  gemm::run(
      M == 1 ? "gemm/gemm<Int4RoundedRow, Unscaled, OneToken>" : "gemm/gemm<Int4RoundedRow, Unscaled, ManyTokens>",
      input, weight, weight_scale, output, sizes);
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
  const char* one_token =
      e5m2 ? "gemm/gemm<Fp8Row<E5M2Flush>, TensorScale, OneToken>" : "gemm/gemm<Fp8Row<E4M3>, TensorScale, OneToken>";
  const char* many_tokens = e5m2 ? "gemm/gemm<Fp8Row<E5M2Flush>, TensorScale, ManyTokens>"
                                 : "gemm/gemm<Fp8Row<E4M3>, TensorScale, ManyTokens>";
  gemm::run(M == 1 ? one_token : many_tokens, input, weight, weight_scale, output, sizes);
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

  gemm::run(M == 1 ? "gemm/gemm<Fp8BlockRow, Unscaled, OneToken>" : "gemm/gemm<Fp8BlockRow, Unscaled, ManyTokens>",
            input, weight, weight_scale, output, sizes);
  return output;
}

}  // namespace esimd_ops
