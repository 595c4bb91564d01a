// One-token matrix-vector operators with fp16 and int4 weights, and what all GEMV operators share.
// More than one token is refused: the original library ignores the rest.
#include "gemv/gemv.h"

#include <ATen/ceil_div.h>

#include <array>

#include "device/tile.h"
#include "gemm/gemm.h"
#include "ops.h"
#include "xmx/xmx.h"

namespace esimd_ops {
namespace gemv {
namespace {

void check_weight_and_output(const Checks& check, const Matrix& matrix, at::ScalarType dtype, int64_t columns) {
  const auto& [name, weight] = matrix.weight;
  check(name, weight)
      .dtype(dtype)
      .expect(weight.dim() == 2 && weight.size(1) == columns, "shape [N, ", columns, "], found ", weight.sizes());
  check(matrix.output.first, matrix.output.second).dtype(at::kHalf).elements(matrix.N());
}

}  // namespace

int64_t check_token(const Checks& check, const char* name, const at::Tensor& token) {
  const auto argument = check(name, token);
  argument.dtype(at::kHalf).rows();
  const int64_t K = token.size(-1);
  argument.one_row(K);
  return K;
}

void check_half(const Checks& check, const Matrix& matrix, int64_t K) {
  check_weight_and_output(check, matrix, at::kHalf, K);
}

void check_int4_bytes(const Checks& check, const Matrix& matrix, int64_t K) {
  check_weight_and_output(check, matrix, at::kByte, K / 2);
  check(matrix.weight.first, matrix.weight.second).aligned(sizeof(uint32_t));
  check(matrix.scale.first, matrix.scale.second).dtype(at::kHalf).shape({matrix.N(), K / kInt4Group});
}

void check_int4_words(const Checks& check, const Matrix& matrix, int64_t K) {
  check_weight_and_output(check, matrix, at::kInt, K / 8);
  check(matrix.scale.first, matrix.scale.second).dtype(at::kHalf).shape({matrix.N(), K / kInt4Group});
}

void check_fp8_row_scaled(const Checks& check, const Matrix& matrix, int64_t K) {
  check(matrix.weight.first, matrix.weight.second).fp8();
  check_weight_and_output(check, matrix, matrix.weight.second.scalar_type(), K);
  check(matrix.scale.first, matrix.scale.second).dtype(at::kHalf).elements(matrix.N());
}

void check_fp8_tensor_scaled(const Checks& check, const Matrix& matrix, int64_t K) {
  check(matrix.weight.first, matrix.weight.second).fp8();
  check_weight_and_output(check, matrix, matrix.weight.second.scalar_type(), K);
  check(matrix.scale.first, matrix.scale.second).dtype(at::kFloat).elements(1);
}

void check_fp8_block_scaled(const Checks& check, const Matrix& matrix, int64_t K) {
  check_weight_and_output(check, matrix, at::kFloat8_e4m3fn, K);
  check(matrix.scale.first, matrix.scale.second)
      .dtype(at::kFloat)
      .shape({at::ceil_div<int64_t>(matrix.N(), kFp8Block), K / kFp8Block});
}

bool is_e5m2(const Checks& check, Matrices matrices) {
  const auto of = [](const Matrix& matrix) { return matrix.weight.second.scalar_type() == at::kFloat8_e5m2; };
  const bool first = of(*matrices.begin());
  for (const Matrix& matrix : matrices) {
    check(matrix.weight.first, matrix.weight.second)
        .expect(of(matrix) == first, first ? "E5M2" : "E4M3", " weights like those of ", matrices.begin()->weight.first,
                ", found ", matrix.weight.second.scalar_type());
  }
  return first;
}

int64_t groups_of(int64_t N, int64_t rows) { return at::ceil_div<int64_t>(N, rows); }

void run(const std::string& kinds, const at::Tensor& input, Matrices matrices, int64_t K) {
  struct Operands {
    const void* weight = nullptr;
    const void* scale = nullptr;
    void* output = nullptr;
    int64_t N = 0;
  };
  std::array<Operands, 3> all;
  auto next = all.begin();
  bool wide = xmx::fits(queue(input), {{input, 1}});
  for (const Matrix& matrix : matrices) {
    *next++ = {matrix.weight.second.const_data_ptr(), matrix.scale.second.const_data_ptr(),
               matrix.output.second.mutable_data_ptr(), matrix.N()};
    wide = wide && xmx::fits(queue(input), {{matrix.weight.second, matrix.N()}});
  }
  int64_t groups = 0;
  for (const Matrix& matrix : matrices) groups += wide ? groups_of(matrix.N(), kXmxRows) : groups_of(matrix.N());
  const auto& [m0, m1, m2] = all;
  nd_launch(queue(input), {groups, wide ? kXmxThreads : kGroupSize},
            wide ? Kernel{"xmx/gemv_wide<" + kinds + ">", 1} : kernel("gemv/gemv<" + kinds + ">"),
            input.const_data_ptr(), m0.weight, m0.scale, m0.output, m0.N, m1.weight, m1.scale, m1.output, m1.N,
            m2.weight, m2.scale, m2.output, m2.N, K);
}

}  // namespace gemv

namespace {

int64_t check_int4_token(const Checks& check, const at::Tensor& input) {
  const int64_t K = gemv::check_token(check, "input", input);
  check.expect(K % kInt4Group == 0, "input", "a multiple of ", kInt4Group, " elements, found ", K);
  return K;
}

}  // namespace

at::Tensor gemv_int4(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  const Checks check("esimd_gemv_int4", input);
  const int64_t K = check_int4_token(check, input);
  const gemv::Matrix matrix{{"weight", weight}, {"weight_scale", weight_scale}, {"output", output}};
  gemv::check_int4_bytes(check, matrix, K);
  check.apart({matrix.output}, {{"input", input}, matrix.weight, matrix.scale});

  gemv::run("half, Int4Row, Unscaled", input, {matrix}, K);
  return output;
}

at::Tensor gemv_int4_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                            at::Tensor o1) {
  const Checks check("esimd_gemv_int4_fused2", input);
  const int64_t K = check_int4_token(check, input);
  const gemv::Matrix first{{"w0", w0}, {"s0", s0}, {"o0", o0}};
  const gemv::Matrix second{{"w1", w1}, {"s1", s1}, {"o1", o1}};
  gemv::check_int4_bytes(check, first, K);
  gemv::check_int4_bytes(check, second, K);
  check.apart({first.output, second.output},
              {{"input", input}, first.weight, first.scale, second.weight, second.scale});

  gemv::run("half, Int4Row, Unscaled", input, {first, second}, K);
  return o0;
}

// Any number of tokens: the name is the original's.
at::Tensor gemv_fp16(at::Tensor input, at::Tensor weight, at::Tensor output) {
  const Checks check("esimd_gemv_fp16", input);
  const gemm::Sizes sizes = gemm::check_input(check, input, weight);
  check("weight", weight).dtype(at::kHalf).shape({sizes.N, sizes.K});
  gemm::check_output(check, output, sizes);
  check.apart({{"output", output}}, {{"input", input}, {"weight", weight}});

  if (sizes.M == 1) {
    const gemv::Matrix matrix{{"weight", weight}, {"weight", weight}, {"output", output}};
    gemv::run("half, HalfRow, Unscaled", input, {matrix}, sizes.K);
  } else {
    gemm::run({"InOrder", "HalfRow", "Unscaled"}, input, weight, weight, output, sizes);
  }
  return output;
}

at::Tensor gemv_fp16_gelu_mul(at::Tensor input, at::Tensor weight, at::Tensor output) {
  const Checks check("esimd_gemv_fp16_gelu_mul", input);
  const int64_t K = gemv::check_token(check, "input", input);
  check("weight", weight)
      .dtype(at::kHalf)
      .expect(weight.dim() == 2 && weight.size(0) % 2 == 0 && weight.size(1) == K, "shape [2N, ", K, "], found ",
              weight.sizes());
  const int64_t N = weight.size(0) / 2;
  check("output", output).dtype(at::kHalf).one_row(N);
  check.apart({{"output", output}}, {{"input", input}, {"weight", weight}});

  const bool wide = xmx::fits(queue(input), {{input, 1}, {weight, 2 * N}});
  const Range range{wide ? gemv::groups_of(N, kXmxRows) : gemv::groups_of(2 * N), wide ? kXmxThreads : kGroupSize};
  nd_launch(queue(input), range, wide ? Kernel{"xmx/gelu_mul_wide<HalfRow>", 1} : kernel("gemv/gemv_gelu_mul<HalfRow>"),
            input.const_data_ptr(), weight.const_data_ptr(), output.mutable_data_ptr(), N, K);
  return output;
}

}  // namespace esimd_ops
