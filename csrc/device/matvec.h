// Activations times decoded weight rows: the one body of every GEMV and small GEMM kernel.
//
// A kernel supplies three things: `activation(token, k)`, the fp32 input (a load, or a norm on the way); `row_of(n)`,
// the weight row of output n (see weights.h); `store(token, n, sum)`, the scale, rounding and place of a result.
#pragma once

#include "kernel.h"

// The sub-groups of a work-group share one copy of the activations in local memory; each takes kRows weight rows.
template <typename Row, int kTokens, int kRows, typename Activation, typename RowOf, typename Store>
void matvec(int64_t tokens, int64_t first_token, int64_t N, int64_t K, int64_t row_block, Activation activation,
            RowOf row_of, Store store) {
  constexpr int kChunk = kTokens == 1 ? 4096 : 1024;
  constexpr int kScales = Row::kScaled ? kChunk / Row::kStep : 1;
  static_assert(kChunk % Row::kStep == 0);

  const auto group = this_item().get_group();
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  const int sub_group_id = sub_group.get_group_linear_id();
  auto& activations = *sycl::ext::oneapi::group_local_memory_for_overwrite<float[kTokens * kChunk]>(group);
  auto& all_scales = *sycl::ext::oneapi::group_local_memory_for_overwrite<float[kSubGroups][kRows][kScales]>(group);
  auto& scales = all_scales[sub_group_id];

  const int64_t first_row = (row_block * kSubGroups + sub_group_id) * kRows;
  Row rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) rows[r] = row_of(sycl::min(first_row + r, N - 1));  // past the end: not stored

  float sums[kRows][kTokens] = {};
  for (int64_t begin = 0; begin < K; begin += kChunk) {
    const int steps = (sycl::min<int64_t>(kChunk, K - begin) + Row::kStep - 1) / Row::kStep;
    // Stored in the order in which lanes ask for them, so that a sub-group reads 16 neighbours.
    for (int i = group.get_local_linear_id(); i < steps * Row::kStep; i += kGroupSize) {
      const int64_t k = begin + i / Row::kStep * Row::kStep +
                        Row::position(i % kSubGroupSize, i % Row::kStep / kSubGroupSize);
#pragma unroll
      for (int t = 0; t < kTokens; ++t)
        activations[t * kChunk + i] = k < K && first_token + t < tokens ? activation(first_token + t, k) : 0.0f;
    }
    // Read one by one between the weights, scales cost as much time as the weights themselves.
    if constexpr (Row::kScaled) {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        for (int step = lane; step < steps; step += kSubGroupSize)
          scales[r][step] = rows[r].scale(begin + step * Row::kStep);
    }
    sycl::group_barrier(group);

    for (int step = 0; step < steps; ++step) {
      const float* x = &activations[step * Row::kStep + lane];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float w[Row::kPerLane];
        const float scale = Row::kScaled ? scales[r][step] : 1.0f;
        const float factor = rows[r].decode(begin + step * Row::kStep, lane, K, scale, w);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
          float partial = 0;
#pragma unroll
          for (int e = 0; e < Row::kPerLane; ++e) partial += w[e] * x[t * kChunk + e * kSubGroupSize];
          sums[r][t] += partial * factor;
        }
      }
    }
    sycl::group_barrier(group);
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      const float sum = sycl::reduce_over_group(sub_group, sums[r][t], sycl::plus<float>());
      if (lane == 0 && first_row + r < N && first_token + t < tokens) store(first_token + t, first_row + r, sum);
    }
  }
}
