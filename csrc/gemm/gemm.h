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

// A kind of weights, by the types that kernels have for it: see device/weights.h.
struct Kind {
  const char* order;
  const char* row;
  const char* scale;
};

// For any M that is not 0.
void run(const Kind& kind, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& scale,
         const at::Tensor& output, const Sizes& sizes);

}  // namespace esimd_ops::gemm
