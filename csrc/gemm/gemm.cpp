// Matrix products for any number of tokens. The original library leaves rows from the 64th on unwritten (int4), and
// decodes the subnormals of E4M3 or not as M and N have it (fp8); here every M is computed, and by one decoder.
#include "gemm/gemm.h"

#include <ATen/ceil_div.h>

#include <algorithm>
#include <string>

#include "device/tile.h"
#include "ops.h"
#include "runtime.h"
#include "xmx/xmx.h"

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

std::string name(const char* kernel, const Kind& kind, const std::string& more = "") {
  return std::string(kernel) + "<" + kind.row + ", " + kind.scale + more + ">";
}

// The activations as one of the kernels leaves them that lay them out: [lines, pitch] fp32.
at::Tensor lay_out(const char* kernel_name, const Kind& kind, Range range, const at::Tensor& input, const Sizes& sizes,
                   int64_t lines, int64_t pitch) {
  const at::Tensor activations = temporary(input, {lines, pitch}, at::kFloat);
  nd_launch(queue(input), range, kernel(std::string("gemm/") + kernel_name + "<" + kind.order + ">"),
            input.const_data_ptr(), activations.mutable_data_ptr(), sizes.M, sizes.K,
            at::ceil_div<int64_t>(sizes.K, kStep), pitch);
  return activations;
}

void one_token(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
               const at::Tensor& output, const Sizes& sizes) {
  const int64_t groups = at::ceil_div<int64_t>(sizes.N, kSubGroups * OneToken::kRows);
  nd_launch(queue(input), {groups, kGroupSize}, kernel(name("gemm/one_token", kind)), input.const_data_ptr(),
            weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), sizes.N, sizes.K);
}

void few_tokens(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
                const at::Tensor& output, const Sizes& sizes) {
  const auto& [M, N, K] = sizes;
  const int64_t token_blocks = at::ceil_div<int64_t>(M, FewTokens::kTokens);
  const int64_t tokens = token_blocks * FewTokens::kTokens;
  // A pitch that is a power of two would put all tokens into the same few sets of a cache.
  const int64_t pitch = at::ceil_div<int64_t>(K, kStep) * kStep + kSubGroupSize;
  const at::Tensor activations =
      lay_out("lines_of_tokens", kind, {tokens, kGroupSize}, input, sizes, tokens, pitch);
  const int64_t row_blocks = at::ceil_div<int64_t>(N, kSubGroups * FewTokens::kRows);
  nd_launch(queue(input), {row_blocks * token_blocks, kGroupSize}, kernel(name("gemm/few_tokens", kind)),
            activations.const_data_ptr(), weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), M,
            N, K, token_blocks, pitch);
}

template <typename Tile>
void many_tokens(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
                 const at::Tensor& output, const Sizes& sizes) {
  const auto& [M, N, K] = sizes;
  const std::string product = name("gemm/many_tokens", kind, ", " + std::to_string(Tile::kPerLane));
  const int64_t token_blocks = at::ceil_div<int64_t>(M, Tile::kTokens);
  const int64_t tokens = token_blocks * Tile::kTokens;
  const int64_t steps = at::ceil_div<int64_t>(K, kStep);
  const at::Tensor activations = lay_out("columns_of_tokens", kind, {tokens / kSubGroupSize * steps, kSubGroupSize},
                                         input, sizes, steps * kStep, tokens);
  const at::Tensor partial = temporary(input, {K > Tile::kDepth ? N : 0, tokens}, at::kFloat);
  int64_t begin = 0;
  do {
    nd_launch(queue(input), {at::ceil_div<int64_t>(N, Tile::kRows) * token_blocks, kSubGroupSize},
              kernel(product), activations.const_data_ptr(), weight.const_data_ptr(),
              scale.const_data_ptr(), output.mutable_data_ptr(), partial.mutable_data_ptr(), M, N, K, begin,
              std::min<int64_t>(begin + Tile::kDepth, K), token_blocks, tokens);
    begin += Tile::kDepth;
  } while (begin < K);
}

template <int kBlocks>
void on_matrix_engines(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
                       const at::Tensor& output, const Sizes& sizes) {
  const auto& [M, N, K] = sizes;
  const int64_t token_blocks = at::ceil_div<int64_t>(M, kBlocks * kXmxTokens);
  nd_launch(queue(input), {at::ceil_div<int64_t>(N, kXmxRows) * token_blocks, kXmxThreads},
            {name("xmx/on_xmx", kind, ", " + std::to_string(kBlocks)), 1}, input.const_data_ptr(),
            weight.const_data_ptr(), scale.const_data_ptr(), output.mutable_data_ptr(), M, N, K, token_blocks);
}

}  // namespace

void run(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const Sizes& sizes) {
  if (xmx::fits(queue(input), {{input, sizes.M}, {weight, sizes.N}})) {
    if (sizes.M <= kXmxTokens) {
      on_matrix_engines<1>(kind, input, weight, scale, output, sizes);
    } else {
      on_matrix_engines<4>(kind, input, weight, scale, output, sizes);
    }
  } else if (sizes.M == 1) {
    one_token(kind, input, weight, scale, output, sizes);
  } else if (sizes.M <= 2 * FewTokens::kTokens) {
    few_tokens(kind, input, weight, scale, output, sizes);
  } else if (sizes.M <= ManyTokens<2>::kTokens) {
    many_tokens<ManyTokens<2>>(kind, input, weight, scale, output, sizes);
  } else {
    many_tokens<ManyTokens<4>>(kind, input, weight, scale, output, sizes);
  }
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
  gemm::run({"InOrder", e5m2 ? "Fp8Row<E5M2Flush>" : "Fp8Row<E4M3>", "TensorScale"}, input, weight, weight_scale,
            output, sizes);
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
