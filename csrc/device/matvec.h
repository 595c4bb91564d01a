// Activations times decoded weight rows for one token, or for the few tokens of an expert. More tokens: see matmul.h.
//
// A kernel supplies three things: `activation(token, k)`, the fp32 input (a load, or a norm on the way); `row_of(n)`,
// the weight row of output n (see weights.h); `store(token, n, sum, wanted)`, the scale, rounding and place of a
// result. All lanes of a sub-group call it, each with a sum of its own; one that is not wanted has no place.
#pragma once

#include "sums.h"

// Local memory of a work-group: the activations, one copy for all, and each sub-group's scales, where there are any.
template <typename Row, typename Tile>
struct MatvecMemory {
  static constexpr int kChunk = Tile::kTokens == 1 ? 8192 : 1024;  // elements of a token at a time
  static_assert(kChunk % kStep == 0);
  struct None {};
  using Scales = float[kSubGroups][Tile::kRows][kChunk / kStep];

  float activations[Tile::kTokens * kChunk];
  [[no_unique_address]] std::conditional_t<Row::kScaled, Scales, None> scales;

  static MatvecMemory& of_group() {
    return *sycl::ext::oneapi::group_local_memory_for_overwrite<MatvecMemory>(this_item().get_group());
  }
};

// Each sub-group takes kRows weight rows. `memory` is a parameter so that a kernel with two kinds of rows has one.
template <typename Row, typename Tile, typename Activation, typename RowOf, typename Store>
void matvec(MatvecMemory<Row, Tile>& memory, int64_t tokens, int64_t first_token, int64_t N, int64_t K,
            int64_t row_block, Activation activation, RowOf row_of, Store store) {
  constexpr int kTokens = Tile::kTokens;
  constexpr int kRows = Tile::kRows;
  constexpr int kTogether = kTokens == 1 && Row::kTogether < kRows ? Row::kTogether : kRows;
  constexpr int kChunk = MatvecMemory<Row, Tile>::kChunk;
  static_assert(sizeof(memory) <= 64 << 10);  // so that two work-groups fit a core

  const auto group = this_item().get_group();
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  const int sub_group_id = sub_group.get_group_linear_id();
  auto& activations = memory.activations;

  // The rows that a sub-group reads together lie far apart, in different pages, those that it reads one after the other
  // behind one another, as the hardware's prefetching wants it.
  const auto row = [&](int r) {
    return ((row_block * kTogether + r % kTogether) * kSubGroups + sub_group_id) * (kRows / kTogether) + r / kTogether;
  };
  Row rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) rows[r] = row_of(row(r) < N ? row(r) : N - 1);  // too many: not stored

  // The last tile may be short, and an expert's only tile mostly is: its missing tokens cost nothing.
  const int64_t live = tokens - first_token;
  float sums[kRows][kTokens] = {};
  for (int64_t begin = 0; begin < K; begin += kChunk) {
    const int64_t left = K - begin;
    const int steps = ((left < kChunk ? left : kChunk) + kStep - 1) / kStep;
    // Loaded as they lie and stored in the order in which lanes ask for them: a gather costs more than a scatter.
    for (int step = sub_group_id; step < steps; step += kSubGroups) {
      const int64_t first = begin + step * kStep;
      float* place = &activations[step * kStep];
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t >= live) break;
        if (first + kStep <= K) {
#pragma unroll
          for (int e = 0; e < Row::kPerLane; ++e) {
            const int i = e * kSubGroupSize + lane;
            place[t * kChunk + Row::Order::slot(i)] = activation(first_token + t, first + i) * Row::prescale(i);
          }
        } else {
#pragma unroll
          for (int e = 0; e < Row::kPerLane; ++e) {
            const int i = e * kSubGroupSize + lane;
            place[t * kChunk + Row::Order::slot(i)] =
                first + i < K ? activation(first_token + t, first + i) * Row::prescale(i) : 0.0f;
          }
        }
      }
    }
    // Read one by one between the weights, scales cost as much time as the weights themselves.
    if constexpr (Row::kScaled) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        int first = 0;
        for (; first + kSubGroupSize <= steps; first += kSubGroupSize)
          memory.scales[sub_group_id][r][first + lane] = rows[r].scale(begin / kStep + first + lane);
        if (first + lane < steps)
          memory.scales[sub_group_id][r][first + lane] = rows[r].scale(begin / kStep + first + lane);
      }
    }
    sycl::group_barrier(group);

#pragma unroll
    for (int first = 0; first < kRows; first += kTogether) {
      for (int step = 0; step < steps; ++step) {
        const float* x = &activations[step * kStep + lane];
        float w[kTogether][Row::kPerLane];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          float scale = 1.0f;
          if constexpr (Row::kScaled) scale = memory.scales[sub_group_id][first + i][step];
          const float factor = rows[first + i].decode(begin + step * kStep, lane, K, scale, w[i]);
          if constexpr (kTokens == 1) {
            float partial = 0;
#pragma unroll
            for (int e = 0; e < Row::kPerLane; ++e) partial += w[i][e] * x[e * kSubGroupSize];
            sums[first + i][0] += partial * factor;
          } else {
#pragma unroll
            for (int e = 0; e < Row::kPerLane; ++e) w[i][e] *= factor;
          }
        }
        // Each activation is loaded once for all rows.
        if constexpr (kTokens > 1) {
#pragma unroll
          for (int t = 0; t < kTokens; ++t) {
            if (t >= live) break;
#pragma unroll
            for (int e = 0; e < Row::kPerLane; ++e) {
              const float value = x[t * kChunk + e * kSubGroupSize];
#pragma unroll
              for (int i = 0; i < kTogether; ++i) sums[first + i][t] += w[i][e] * value;
            }
          }
        }
      }
    }
    sycl::group_barrier(group);
  }

  // Sum number r * kTokens + t is left in the lane of that number.
  float partial[kRows * kTokens];
#pragma unroll
  for (int i = 0; i < kRows * kTokens; ++i) partial[i] = sums[i / kTokens][i % kTokens];
  const float sum = transposed_sum(sub_group, lane, partial);
  const int64_t n = row(lane / kTokens % kRows);
  const int64_t t = lane % kTokens;
  store(first_token + t, n, sum, lane < kRows * kTokens && n < N && t < live);
}
