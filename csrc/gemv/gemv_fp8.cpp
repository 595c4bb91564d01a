// One-token matrix-vector operators with fp8 weights: one, two or three matrices that share their input.
#include "device/tile.h"
#include "gemv/gemv.h"
#include "ops.h"
#include "xmx/xmx.h"

namespace esimd_ops {
namespace {

using gemv::Matrices;
using gemv::Matrix;

void check_apart(const Checks& check, const at::Tensor& input, Matrices matrices) {
  for (auto one = matrices.begin(); one != matrices.end(); ++one) {
    const auto output = check(one->output.first, one->output.second);
    output.apart_from({{"input", input}});
    for (auto other = matrices.begin(); other != matrices.end(); ++other) {
      output.apart_from({other->weight, other->scale});
      if (other > one) output.apart_from({other->output});
    }
  }
}

// One fp16 scale a row. N and K, which the original trusts, are those of the weights.
at::Tensor row_scaled(const char* op, const at::Tensor& input, Matrices matrices, std::initializer_list<int64_t> Ns,
                      std::initializer_list<const char*> N_names, int64_t K) {
  const Checks check(op, input);
  const int64_t elements = gemv::check_token(check, "input", input);
  check.expect(K == elements, "K", elements, ", the elements of input, found ", K);
  auto N = Ns.begin();
  auto N_name = N_names.begin();
  for (const Matrix& matrix : matrices) {
    gemv::check_fp8_row_scaled(check, matrix, K);
    check.expect(*N == matrix.N(), *N_name++, matrix.N(), ", the rows of ", matrix.weight.first, ", found ", *N);
    ++N;
  }
  const bool e5m2 = gemv::is_e5m2(check, matrices);
  check_apart(check, input, matrices);

  gemv::run(e5m2 ? "half, Fp8Row<E5M2Flush>, RowScale<half>"
                 : "half, Fp8Row<E4M3Flush>, RowScale<half>",
            input, matrices, K);
  return matrices.begin()->output.second;
}

// One fp32 scale a matrix.
at::Tensor tensor_scaled(const char* op, const at::Tensor& input, Matrices matrices) {
  const Checks check(op, input);
  const int64_t K = gemv::check_token(check, "input", input);
  for (const Matrix& matrix : matrices) gemv::check_fp8_tensor_scaled(check, matrix, K);
  const bool e5m2 = gemv::is_e5m2(check, matrices);
  check_apart(check, input, matrices);

  gemv::run(
      e5m2 ? "half, Fp8Row<E5M2Flush>, TensorScale" : "half, Fp8Row<E4M3Flush>, TensorScale",
      input, matrices, K);
  return matrices.begin()->output.second;
}

int64_t check_block_scaled_token(const Checks& check, const at::Tensor& input, int64_t block_n, int64_t block_k) {
  check.expect(block_n == kFp8Block, "block_n", kFp8Block, ", found ", block_n);
  check.expect(block_k == kFp8Block, "block_k", kFp8Block, ", found ", block_k);
  const int64_t K = gemv::check_token(check, "input", input);
  check.expect(K % kFp8Block == 0, "input", "a multiple of ", kFp8Block, " elements, found ", K);
  return K;
}

}  // namespace

at::Tensor gemv_fp8_pern(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output, int64_t N,
                         int64_t K) {
  return row_scaled("esimd_gemv_fp8_pern", input,
                    {{{"weight", weight}, {"weight_scale", weight_scale}, {"output", output}}}, {N}, {"N"}, K);
}

at::Tensor gemv_fp8_pern_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, int64_t N0,
                                at::Tensor w1, at::Tensor s1, at::Tensor o1, int64_t N1, int64_t K) {
  return row_scaled("esimd_gemv_fp8_pern_fused2", input,
                    {{{"w0", w0}, {"s0", s0}, {"o0", o0}}, {{"w1", w1}, {"s1", s1}, {"o1", o1}}}, {N0, N1},
                    {"N0", "N1"}, K);
}

at::Tensor gemv_fp8_pern_fused3(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, int64_t N0,
                                at::Tensor w1, at::Tensor s1, at::Tensor o1, int64_t N1, at::Tensor w2, at::Tensor s2,
                                at::Tensor o2, int64_t N2, int64_t K) {
  return row_scaled("esimd_gemv_fp8_pern_fused3", input,
                    {{{"w0", w0}, {"s0", s0}, {"o0", o0}},
                     {{"w1", w1}, {"s1", s1}, {"o1", o1}},
                     {{"w2", w2}, {"s2", s2}, {"o2", o2}}},
                    {N0, N1, N2}, {"N0", "N1", "N2"}, K);
}

at::Tensor gemv_fp8_pert(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  return tensor_scaled("esimd_gemv_fp8_pert", input,
                       {{{"weight", weight}, {"weight_scale", weight_scale}, {"output", output}}});
}

at::Tensor gemv_fp8_pert_bmg(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  return tensor_scaled("esimd_gemv_fp8_pert_bmg", input,
                       {{{"weight", weight}, {"weight_scale", weight_scale}, {"output", output}}});
}

at::Tensor gemv_fp8_pert_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                at::Tensor s1, at::Tensor o1) {
  return tensor_scaled("esimd_gemv_fp8_pert_fused2", input,
                       {{{"w0", w0}, {"s0", s0}, {"o0", o0}}, {{"w1", w1}, {"s1", s1}, {"o1", o1}}});
}

at::Tensor gemv_fp8_pert_fused3(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                at::Tensor s1, at::Tensor o1, at::Tensor w2, at::Tensor s2, at::Tensor o2) {
  return tensor_scaled("esimd_gemv_fp8_pert_fused3", input,
                       {{{"w0", w0}, {"s0", s0}, {"o0", o0}},
                        {{"w1", w1}, {"s1", s1}, {"o1", o1}},
                        {{"w2", w2}, {"s2", s2}, {"o2", o2}}});
}

at::Tensor gemv_fp8_blockscale_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                      at::Tensor s1, at::Tensor o1, int64_t block_n, int64_t block_k) {
  const Checks check("esimd_gemv_fp8_blockscale_fused2", input);
  const int64_t K = check_block_scaled_token(check, input, block_n, block_k);
  const Matrix first{{"w0", w0}, {"s0", s0}, {"o0", o0}};
  const Matrix second{{"w1", w1}, {"s1", s1}, {"o1", o1}};
  gemv::check_fp8_block_scaled(check, first, K);
  gemv::check_fp8_block_scaled(check, second, K);
  check_apart(check, input, {first, second});

  gemv::run("half, Fp8BlockRow, Unscaled", input, {first, second}, K);
  return o0;
}

at::Tensor gemv_fp8_blockscale_fp16_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1,
                                           at::Tensor o1, int64_t block_n, int64_t block_k) {
  const Checks check("esimd_gemv_fp8_blockscale_fp16_fused2", input);
  const int64_t K = check_block_scaled_token(check, input, block_n, block_k);
  const Matrix first{{"w0", w0}, {"s0", s0}, {"o0", o0}};
  const Matrix second{{"w1", w1}, {"w1", w1}, {"o1", o1}};
  gemv::check_fp8_block_scaled(check, first, K);
  gemv::check_half(check, second, K);
  check_apart(check, input, {first, second});

  const bool wide = xmx::fits(queue(input), {{input, 1}, {w0, first.N()}, {w1, second.N()}});
  const int64_t rows = wide ? kXmxRows : kSubGroups * OneToken::kRows;
  const int64_t groups = gemv::groups_of(first.N(), rows) + gemv::groups_of(second.N(), rows);
  nd_launch(queue(input), {groups, wide ? kXmxThreads : kGroupSize},
            wide ? Kernel{"xmx/mixed_wide<Fp8BlockRow, HalfRow>", 1} : kernel("gemv/gemv_mixed<Fp8BlockRow, HalfRow>"),
            input.const_data_ptr(), w0.const_data_ptr(), s0.const_data_ptr(), o0.mutable_data_ptr(), first.N(),
            w1.const_data_ptr(), /*s1=*/static_cast<const void*>(nullptr), o1.mutable_data_ptr(), second.N(), K);
  return o0;
}

}  // namespace esimd_ops
