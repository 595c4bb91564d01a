// Activations times decoded weight rows for one token, or for the few tokens of an expert. More tokens: see matmul.h.
//
// A kernel supplies three things: `activation(token, k)`, the input in the type that it is kept in; `row_of(n)`,
// the weight row of output n (see weights.h); `store(token, n, sum, wanted)`, the scale, rounding and place of a
// result. All lanes of a sub-group call it, each with a sum of its own; one that is not wanted has no place.
#pragma once

#include "sums.h"

// Local memory of a work-group: the activations, one copy for all.
template <typename Tile, typename Kept>
struct MatvecMemory {
  static constexpr int kChunk = Tile::kTokens == 1 ? 8192 : 1024;  // elements of a token at a time
  static_assert(kChunk % kStep == 0);

  Kept activations[Tile::kTokens][kChunk];
  static_assert(sizeof(activations) <= 64 << 10);  // so that two work-groups fit a core

  static auto& of_group() {
    return sycl::ext::oneapi::group_local_memory_for_overwrite<MatvecMemory>(this_item().get_group())->activations;
  }
};

// Each sub-group takes Tile::kRows weight rows, some together and one pass after the other. A pass is in the code once:
// a CPU fetches ahead what one and the same instruction has read in equal steps, so each load must go through the rows
// as they lie in memory, from the last pass to the next sub-group too.
template <typename Row, typename Tile, typename Activation, typename RowOf, typename Store>
void matvec(int64_t tokens, int64_t first_token, int64_t N, int64_t K, int64_t row_block, Activation activation,
            RowOf row_of, Store store) {
  constexpr int kTokens = Tile::kTokens;
  constexpr int kTogether = Tile::kTogether;
  constexpr int kPasses = Tile::kRows / kTogether;
  constexpr int kSums = kTogether * kTokens;  // of a pass
  using Memory = MatvecMemory<Tile, decltype(activation(first_token, K))>;
  constexpr int kChunk = Memory::kChunk;
  static_assert(kPasses * kSums <= kSubGroupSize);

  const auto group = this_item().get_group();
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  const int sub_group_id = sub_group.get_group_linear_id();
  auto& activations = Memory::of_group();
  const auto row = [&](int i, int pass) {
    return ((row_block * kTogether + i) * kSubGroups + sub_group_id) * kPasses + pass;
  };

  // The last tile may be short, and an expert's only tile mostly is: its missing tokens cost nothing.
  const int64_t live = tokens - first_token;
  float result = 0;  // lane pass * kSums + i * kTokens + t has that of row i of the pass and token t
  for (int64_t begin = 0; begin < K; begin += kChunk) {
    const int64_t left = K - begin;
    const int steps = ((left < kChunk ? left : kChunk) + kStep - 1) / kStep;
    for (int step = sub_group_id; step < steps; step += kSubGroups) {
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t >= live) break;
        lay_out<typename Row::Order>(begin + step * kStep, K, &activations[t][step * kStep],
                                     [&](int64_t k) { return activation(first_token + t, k); });
      }
    }
    sycl::group_barrier(group);

#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      Row rows[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) rows[i] = row_of(row(i, pass) < N ? row(i, pass) : N - 1);  // not stored

      float sums[kSums] = {};
      for (int64_t step = 0; step < steps; ++step) {
        float w[kTogether][Row::kPerLane];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          float scale = 1.0f;
          if constexpr (Row::kScaled) scale = rows[i].scale(begin / kStep + step);
          const float factor = rows[i].decode(begin + step * kStep, lane, K, scale, w[i]);
          if constexpr (kTokens == 1) {
            float partial = 0;
#pragma unroll
            for (int e = 0; e < Row::kPerLane; ++e)
              partial += w[i][e] * float(activations[0][step * kStep + e * kSubGroupSize + lane]);
            sums[i] += partial * factor;
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
              const float value = float(activations[t][step * kStep + e * kSubGroupSize + lane]);
#pragma unroll
              for (int i = 0; i < kTogether; ++i) sums[i * kTokens + t] += w[i][e] * value;
            }
          }
        }
      }
      const float sum = transposed_sum(sub_group, lane, sums);
      result += lane / kSums == pass ? sum : 0.0f;
    }
    sycl::group_barrier(group);
  }

  const int pass = lane / kSums;
  const int64_t n = row(lane / kTokens % kTogether, pass);
  store(first_token + lane % kTokens, n, result, pass < kPasses && n < N && lane % kTokens < live);
}
