// What the GEMV operators share: one token, and one to three matrices that read it.
#pragma once

#include <initializer_list>
#include <string>

#include "checks.h"
#include "runtime.h"

namespace esimd_ops::gemv {

// weight [N, K] in some packing, its scale, and output [1, N] fp16, as the operator names them.
struct Matrix {
  Named weight;
  Named scale;
  Named output;

  int64_t N() const { return weight.second.size(0); }
};

using Matrices = std::initializer_list<Matrix>;

// One row of fp16; returns its length.
int64_t check_token(const Checks& check, const char* name, const at::Tensor& token);

// The kind of a matrix: dtype and shape of its weight and scale, and its output of N elements.
void check_half(const Checks& check, const Matrix& matrix, int64_t K);               // no scale
void check_int4_bytes(const Checks& check, const Matrix& matrix, int64_t K);         // uint8 [N, K/2]
void check_int4_words(const Checks& check, const Matrix& matrix, int64_t K);         // int32 [N, K/8]
void check_fp8_row_scaled(const Checks& check, const Matrix& matrix, int64_t K);     // fp16 scale [N]
void check_fp8_tensor_scaled(const Checks& check, const Matrix& matrix, int64_t K);  // one fp32 scale
void check_fp8_block_scaled(const Checks& check, const Matrix& matrix, int64_t K);   // E4M3, fp32 scale a block

// The format that all of these fp8 weights have.
bool is_e5m2(const Checks& check, Matrices matrices);

// Work-groups that N rows take, of so many rows each.
int64_t groups_of(int64_t N, int64_t rows = kSubGroups * OneToken::kRows);

// Runs a "gemv<kinds>": of the input, fp16 or fp32, of the rows and of the scale, as the kernels name them.
void run(const std::string& kinds, const at::Tensor& input, Matrices matrices, int64_t K);

}  // namespace esimd_ops::gemv
