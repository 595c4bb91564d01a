// What operators with many tokens share: input [M, K], weight [N, K] in some packing, output [M, N].
#pragma once

#include "checks.h"

namespace esimd_ops::gemm {

struct Sizes {
  int64_t M;
  int64_t N;
  int64_t K;
};

// Input fp16 [M, K]; N is the rows of the weight.
Sizes check_input(const Checks& check, const at::Tensor& input, const at::Tensor& weight);

void check_output(const Checks& check, const at::Tensor& output, const Sizes& sizes);

// Runs "gemm/gemm<Row, Scale, Tile>" of the given name, whose tile is OneToken where M is 1 and ManyTokens elsewhere.
void run(const char* kernel_name, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const Sizes& sizes);

}  // namespace esimd_ops::gemm
