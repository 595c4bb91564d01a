// Activations times decoded weight rows for several tokens. Nothing here is shared between sub-groups: the activations
// were laid out in fp32 before, by a kernel of its own (gemm/gemm.sycl), and come from the cache.
//
// `row_of(n)` gives the weight row of output n (see weights.h); `store(token, n, sum, wanted)` takes a result, whose
// token may be past the last one. Steps past K hold zeros.
#pragma once

#include "sums.h"

// Few tokens: the lanes share a sum, each takes some k.
// activations [Tile::kTokens, pitch], steps in the row's order.
template <typename Row, typename Tile, typename RowOf, typename Store>
void inner_products(const float* activations, int64_t pitch, int64_t N, int64_t K, int64_t row_block, RowOf row_of,
                    Store store) {
  constexpr int kTokens = Tile::kTokens;
  constexpr int kRows = Tile::kRows;
  constexpr int kSums = kTokens * kRows;
  static_assert(kSubGroupSize % kTokens == 0);
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  const int sub_group_id = sub_group.get_group_linear_id();
  const auto row = [&](int r) { return (row_block * kRows + r) * kSubGroups + sub_group_id; };

  const auto group = this_item().get_group();
  auto& results = *sycl::ext::oneapi::group_local_memory_for_overwrite<float[kTokens][kRows][kSubGroups]>(group);
  Row rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) rows[r] = row_of(row(r) < N ? row(r) : N - 1);

  float sums[kSums] = {};  // of row r and token t at r * kTokens + t
  for (int64_t begin = 0; begin < K; begin += kStep) {
    float w[kRows][Row::kPerLane];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float scale = 1.0f;
      if constexpr (Row::kScaled) scale = rows[r].scale(begin / kStep);
      const float factor = rows[r].decode(begin, lane, K, scale, w[r]);
#pragma unroll
      for (int e = 0; e < Row::kPerLane; ++e) w[r][e] *= factor;
    }
    const float* x = activations + begin + lane;
#pragma unroll
    for (int e = 0; e < Row::kPerLane; ++e) {
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        const float value = x[t * pitch + e * kSubGroupSize];
#pragma unroll
        for (int r = 0; r < kRows; ++r) sums[r * kTokens + t] += w[r][e] * value;
      }
    }
  }

#pragma unroll
  for (int first = 0; first < kSums; first += kSubGroupSize) {
    float some[kSubGroupSize];
#pragma unroll
    for (int i = 0; i < kSubGroupSize; ++i) some[i] = first + i < kSums ? sums[first + i] : 0.0f;
    const float sum = transposed_sum(sub_group, lane, some);
    const int r = (first + lane) / kTokens;
    if (r < kRows) results[lane % kTokens][r][sub_group_id] = sum;
  }
  sycl::group_barrier(group);
  static_assert(kSubGroups == kSubGroupSize);
  for (int i = sub_group_id; i < kSums; i += kSubGroups) {  // a CPU stores neighbouring rows at once, others one by one
    const int64_t n = (row_block * kRows + i / kTokens) * kSubGroups + lane;
    store(i % kTokens, n, results[i % kTokens][i / kTokens][lane], n < N);
  }
}

// Many tokens: each lane has tokens of its own, and takes every k from `begin` to `end` of some weight rows, which wait
// decoded in local memory. One sub-group a work-group.
// activations [K in the row's order, pitch]: the tokens of this work-group are the first Tile::kTokens of each line.
// `start(token, n)` is what the sum begins with; `keep` takes sums that are not whole, of neighbouring tokens at once,
// `store` the others, of neighbouring rows.
template <typename Row, typename Tile, typename RowOf, typename Start, typename Keep, typename Store>
void outer_products(const float* activations, int64_t pitch, int64_t N, int64_t K, int64_t begin, int64_t end,
                    int64_t row_block, RowOf row_of, Start start, Keep keep, Store store) {
  constexpr int kPerLane = Tile::kPerLane;
  constexpr int kRows = Tile::kRows;
  const auto group = this_item().get_group();
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  auto& weights = *sycl::ext::oneapi::group_local_memory_for_overwrite<float[kRows][kStep]>(group);

  const int64_t first_row = row_block * kRows;
  Row rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) rows[r] = row_of(first_row + r < N ? first_row + r : N - 1);

  float sums[kRows][kPerLane];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int v = 0; v < kPerLane; ++v)
      sums[r][v] = start(v * kSubGroupSize + lane, first_row + r < N ? first_row + r : N - 1);
  }
  for (; begin < end; begin += kStep) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float scale = 1.0f;
      if constexpr (Row::kScaled) scale = rows[r].scale(begin / kStep);
      float w[Row::kPerLane];
      const float factor = rows[r].decode(begin, lane, K, scale, w);
#pragma unroll
      for (int e = 0; e < Row::kPerLane; ++e) weights[r][e * kSubGroupSize + lane] = w[e] * factor;
    }
    sycl::group_barrier(sub_group);
    const float* x = activations + begin * pitch + lane;
#pragma unroll 1  // unrolled, the sums leave their registers
    for (int k = 0; k < kStep; ++k) {
      float values[kPerLane];
#pragma unroll
      for (int v = 0; v < kPerLane; ++v) values[v] = x[k * pitch + v * kSubGroupSize];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float weight = weights[r][k];
#pragma unroll
        for (int v = 0; v < kPerLane; ++v) sums[r][v] += weight * values[v];
      }
    }
    sycl::group_barrier(sub_group);
  }

#pragma unroll
  for (int v = 0; v < kPerLane; ++v) {
    if (end < K) {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (first_row + r < N) keep(v * kSubGroupSize + lane, first_row + r, sums[r][v]);
    } else {
      float values[kSubGroupSize];
#pragma unroll
      for (int r = 0; r < kSubGroupSize; ++r) values[r] = r < kRows ? sums[r][v] : 0.0f;
      transpose(sub_group, lane, values);
#pragma unroll
      for (int t = 0; t < kSubGroupSize; ++t)
        store(v * kSubGroupSize + t, first_row + lane, values[t], lane < kRows && first_row + lane < N);
    }
  }
}
