// The experts: activations, and products of each expert's rows with its own weight. Rows of no expert are not touched.
#include <ATen/ceil_div.h>

#include <algorithm>
#include <string>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"
#include "xmx/xmx.h"

namespace esimd_ops {
namespace {

at::Tensor activation_mul(const char* op, const char* kernel_name, const at::Tensor& input, const at::Tensor& output,
                          int64_t N_gate_up, Size N_half, int64_t total_rows) {
  const Checks check(op, input);
  check.expect(total_rows >= 0, "total_rows", "no negative count, found ", total_rows);
  check.expect(N_half > 0, "N_half", "at least one column, found ", N_half);
  check.expect(N_gate_up >= 2 * N_half, "N_gate_up", "room for gate and up, ", 2 * N_half, ", found ", N_gate_up);
  check("input", input)
      .dtype(at::kHalf)
      .expect(input.dim() == 2 && input.size(0) >= total_rows && input.size(1) == N_gate_up, "shape [", total_rows,
              " or more, ", N_gate_up, "], found ", input.sizes());
  check("output", output)
      .dtype(at::kHalf)
      .expect(output.dim() == 2 && output.size(0) >= total_rows && output.size(1) == N_half, "shape [", total_rows,
              " or more, ", N_half, "], found ", output.sizes());
  check.apart({{"output", output}}, {{"input", input}});

  const int64_t groups_per_row = at::ceil_div<int64_t>(N_half, kElementwise);
  nd_launch(queue(input), {total_rows * groups_per_row, work_items(queue(input), N_half)}, kernel(kernel_name),
            input.const_data_ptr(), output.mutable_data_ptr(), N_gate_up, N_half, groups_per_row);
  return output;
}

void check_grouped(const Checks& check, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& output,
                   const at::Tensor& expert_idx, int64_t N, int64_t K, Size num_experts) {
  check.expect(num_experts > 0, "num_experts", "at least one expert, found ", num_experts);
  check.expect(K > 0, "K", "at least one column, found ", K);
  check("input", input)
      .dtype(at::kHalf)
      .expect(input.dim() == 2 && input.size(1) == K, "shape [rows, ", K, "], found ", input.sizes());
  check("weight", weight).fp8().shape({num_experts, N, K});
  check("output", output).dtype(at::kHalf).shape({input.size(0), N});
  check("expert_idx", expert_idx).int32().elements(num_experts + 1).starts("rows", input.size(0));
}

// `kinds`: of the rows and of the scale, as the kernels name them.
void run(const std::string& kinds, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const at::Tensor& expert_idx, int64_t N, int64_t K, int64_t num_experts) {
  const int64_t total = input.size(0);
  const auto launch = [&](const Kernel& kernel, int64_t tokens, int64_t rows, int64_t group_size) {
    // At most: each expert's last tile may hold a single row, and no tile is empty.
    const int64_t tiles = std::min(total, (total + num_experts * (tokens - 1)) / tokens);
    const int64_t row_blocks = at::ceil_div<int64_t>(N, rows);
    nd_launch(queue(input), {tiles * row_blocks, group_size}, kernel, input.const_data_ptr(), weight.const_data_ptr(),
              scale.const_data_ptr(), output.mutable_data_ptr(), expert_idx.const_data_ptr(), num_experts, total, N, K,
              scale.numel() / num_experts, row_blocks);
  };
  if (!xmx::fits(queue(input), {{input, total}, {weight, num_experts * N}})) {
    launch(kernel("moe/moe_gemm<" + kinds + ", ExpertTokens>"), ExpertTokens::kTokens, kSubGroups * ExpertTokens::kRows,
           kGroupSize);
  } else if (total <= num_experts * kXmxTokens) {
    launch({"xmx/experts_on_xmx<" + kinds + ", 1>", 1}, kXmxTokens, kXmxRows, kXmxThreads);
  } else {
    launch({"xmx/experts_on_xmx<" + kinds + ", 4>", 1}, 4 * kXmxTokens, kXmxRows, kXmxThreads);
  }
}

}  // namespace

at::Tensor moe_silu_mul(at::Tensor input, at::Tensor output, int64_t N_gate_up, int64_t N_half, int64_t total_rows) {
  return activation_mul("esimd_moe_silu_mul", "moe/activation_mul<Silu>", input, output, N_gate_up, N_half, total_rows);
}

at::Tensor moe_gelu_tanh_mul(at::Tensor input, at::Tensor output, int64_t N_gate_up, int64_t N_half,
                             int64_t total_rows) {
  return activation_mul("esimd_moe_gelu_tanh_mul", "moe/activation_mul<GeluTanh>", input, output, N_gate_up, N_half,
                        total_rows);
}

// The original sizes its launch by the last argument and leaves rows unwritten where it is too small. The launch here
// is sized by the rows there are.
at::Tensor moe_gemm_fp8(at::Tensor input, at::Tensor weight, at::Tensor scale, at::Tensor output, at::Tensor expert_idx,
                        int64_t N, int64_t K, int64_t num_experts, int64_t /*max_tokens_per_expert*/) {
  const Checks check("esimd_moe_gemm_fp8", input);
  check_grouped(check, input, weight, output, expert_idx, N, K, num_experts);
  check("scale", scale).dtype(at::kFloat).elements(Size(num_experts) * N);
  check.apart({{"output", output}},
              {{"input", input}, {"weight", weight}, {"scale", scale}, {"expert_idx", expert_idx}});

  run("Fp8Row<E5M2>, RowScale<float>", input, weight, scale, output, expert_idx, N, K,
      num_experts);
  return output;
}

at::Tensor moe_gemm_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor scale, at::Tensor output,
                             at::Tensor expert_idx, int64_t N, int64_t K, int64_t num_experts,
                             int64_t /*max_tokens_per_expert*/) {
  const Checks check("esimd_moe_gemm_fp8_pert", input);
  check_grouped(check, input, weight, output, expert_idx, N, K, num_experts);
  check("scale", scale).dtype(at::kFloat).elements(num_experts);
  check.apart({{"output", output}},
              {{"input", input}, {"weight", weight}, {"scale", scale}, {"expert_idx", expert_idx}});

  run("Fp8Row<E5M2>, TensorScale", input, weight, scale, output, expert_idx, N, K,
      num_experts);
  return output;
}

// In fp32 for any number of rows; the original rounds scaled weights to half from 128 rows on.
at::Tensor moe_gemm_fp8_blockscale(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output,
                                   at::Tensor expert_idx, int64_t N, int64_t K, int64_t num_experts, int64_t block_n,
                                   int64_t block_k) {
  const Checks check("esimd_moe_gemm_fp8_blockscale", input);
  check.expect(block_n == kFp8Block, "block_n", kFp8Block, ", found ", block_n);
  check.expect(block_k == kFp8Block, "block_k", kFp8Block, ", found ", block_k);
  check.expect(K % kFp8Block == 0, "K", "a multiple of ", kFp8Block, ", found ", K);
  check("weight", weight)
      .expect(weight.scalar_type() == at::kFloat8_e4m3fn || weight.scalar_type() == at::kByte,
              "dtype Float8_e4m3fn or Byte, found ", weight.scalar_type());
  check_grouped(check, input, weight, output, expert_idx, N, K, num_experts);
  check("weight_scale", weight_scale)
      .dtype(at::kFloat)
      .shape({num_experts, at::ceil_div<int64_t>(N, kFp8Block), K / kFp8Block});
  check.apart({{"output", output}},
              {{"input", input}, {"weight", weight}, {"weight_scale", weight_scale}, {"expert_idx", expert_idx}});

  run("Fp8BlockRow, Unscaled", input, weight, weight_scale, output, expert_idx, N, K,
      num_experts);
  return output;
}

}  // namespace esimd_ops
