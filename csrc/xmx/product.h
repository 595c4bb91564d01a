// Tokens times weight rows on a card's matrix engines (XMX): dpas adds tokens [8, 16 k] times weights [16 k, 16 rows]
// to sums [8, 16]. Both come by messages of two dimensions.
#pragma once

#include "xmx/rows.h"

namespace esimd_ops::xmx {

using TileSums = simd<float, kTokens * kRows>;

template <int kBlocks>
inline constexpr int kTileBytes = kBlocks * kTokens * kSumBytes;  // of a thread's sums

// Where a work-group's tile begins: tokens, the one past their last, weight rows in their matrix, and in the output.
struct Tile {
  int first_token, end_token, first_row, first_output;
};

// Adds one step of 16 rows, from element `begin` on, to the sums of kBlocks times 8 tokens.
template <typename Row, int kBlocks>
SYCL_ESIMD_FUNCTION void add_step(const Surface<half>& tokens, const Surface<uint32_t>& weights, const Row& row,
                                  int first_token, int first_row, int begin, TileSums (&sums)[kBlocks]) {
  constexpr int kMessage = 8 * 32 / Row::kBits;  // elements of a row
  constexpr int kPair = 2 * kElements;           // elements of a token in a message
  constexpr int kTogether = kMessage > kPair ? kMessage : kPair;
#pragma unroll
  for (int first = 0; first < kStep; first += kTogether) {
    Words words[kTogether / kMessage];
#pragma unroll
    for (int m = 0; m < kTogether / kMessage; ++m)
      words[m] = weights.load<8, kRows, 1, true>((begin + first) * Row::kBits / 32 + 8 * m, first_row);
#pragma unroll
    for (int at = 0; at < kTogether; at += kPair) {
      auto pair = tokens.load<kElements, kTokens * kBlocks, 2, false>(begin + first + at, first_token);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int k = at + i * kElements;
        Words tile = row.tile(words[k / kMessage], k % kMessage / kElements);
        const Pairs<half> right = tile.bit_cast_view<half>();
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
          const simd<half, kTokens * kElements> left =
              pair.template select<kTokens * kElements, 1>((i * kBlocks + block) * kTokens * kElements);
          sums[block] = esimd::xmx::dpas<8, kTokens, float>(sums[block], right, left);
        }
      }
    }
  }
}

// A work-group takes 16 rows and kBlocks times 8 tokens; its threads share the steps, and add up their sums in local
// memory. output [tokens, N].
template <typename Row, typename Scale, int kBlocks>
SYCL_ESIMD_FUNCTION void multiply(const Surface<half>& tokens, const Surface<uint32_t>& weights, const void* scale,
                                  half* output, int64_t N, int64_t K, Tile tile, int thread) {
  TileSums sums[kBlocks];
#pragma unroll
  for (TileSums& one : sums) one = 0.0f;
  for (int begin = thread * kStep; begin < K; begin += kXmxThreads * kStep) {
    const Row row = Row::at(scale, tile.first_output, N, K, begin);
    if constexpr (Row::kScaled) {
      TileSums step[kBlocks];
#pragma unroll
      for (TileSums& one : step) one = 0.0f;
      add_step(tokens, weights, row, tile.first_token, tile.first_row, begin, step);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) sums[block] += step[block] * row.factor;
    } else {
      add_step(tokens, weights, row, tile.first_token, tile.first_row, begin, sums);
    }
  }

#pragma unroll
  for (int t = 0; t < kBlocks * kTokens; ++t)
    esimd::slm_block_store<float, kRows>(thread * kTileBytes<kBlocks> + t * kSumBytes,
                                         sums[t / kTokens].template select<kRows, 1>(t % kTokens * kRows));
  esimd::barrier();
  const auto factor = Scale::of(scale, tile.first_output, N);
  for (int t = thread; t < kBlocks * kTokens && tile.first_token + t < tile.end_token; t += kXmxThreads)
    store(output + (tile.first_token + t) * N, tile.first_output, N,
          of_all_threads(t * kSumBytes, kTileBytes<kBlocks>) * factor);
}

// output [M, N] = input [M, K] times weight [N, K].
template <typename Row, typename Scale, int kBlocks>
SYCL_ESIMD_FUNCTION void product(const half* input, const void* weight, const void* scale, half* output, int64_t M,
                                 int64_t N, int64_t K, int64_t token_blocks, int64_t group, int thread) {
  esimd::slm_init<kXmxThreads * kTileBytes<kBlocks>>();
  const int first_token = group % token_blocks * kBlocks * kTokens;
  const int first_row = group / token_blocks * kRows;
  multiply<Row, Scale, kBlocks>({input, K * int64_t(sizeof(half)), M}, {weight, K * Row::kBits / 8, N}, scale, output,
                                N, K, {first_token, static_cast<int>(M), first_row, first_row}, thread);
}

// Where the rows of 16 experts start, within `total`; behind the last of `count` nothing starts.
SYCL_ESIMD_FUNCTION inline simd<int, kRows> starts_from(const uint32_t* starts, int first, int64_t count,
                                                        int64_t total) {
  const simd<uint32_t, kRows> places = rows_from(first, count + 1) * uint32_t(sizeof(uint32_t));
  return esimd::min(esimd::gather<uint32_t, kRows>(starts, places), simd<uint32_t, kRows>(total));
}

// Rows starts[e] to starts[e + 1] of the input times weight[e]; scale_stride is the scales of one expert.
// Work-groups number the tiles of tokens of all experts through; those past the last tile have nothing to do.
template <typename Row, typename Scale, int kBlocks>
SYCL_ESIMD_FUNCTION void experts(const half* input, const void* weight, const float* scale, half* output,
                                 const uint32_t* starts, int64_t count, int64_t total, int64_t N, int64_t K,
                                 int64_t scale_stride, int64_t row_blocks, int64_t group, int thread) {
  constexpr int kAll = kBlocks * kTokens;
  esimd::slm_init<kXmxThreads * kTileBytes<kBlocks>>();
  int tile = group / row_blocks, expert = -1, begin = 0, end = 0;
  for (int first = 0; first < count && expert < 0; first += kRows) {
    const simd<int, kRows> begins = starts_from(starts, first, count, total);
    const simd<int, kRows> ends = starts_from(starts, first + 1, count, total);
    const simd<int, kRows> rows = esimd::max(simd<int, kRows>(ends - begins), simd<int, kRows>(0));
    const simd<int, kRows> tiles = (rows + (kAll - 1)) / kAll;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int one = tiles[i];
      if (expert < 0 && tile < one) {
        expert = first + i;
        begin = begins[i];
        end = ends[i];
      }
      if (expert < 0) tile -= one;
    }
  }
  if (expert < 0) return;
  // Rows of the next experts are multiplied too, and not stored: the matrix of all of them is aligned.
  const int first_row = group % row_blocks * kRows;
  multiply<Row, Scale, kBlocks>({input, K * int64_t(sizeof(half)), end}, {weight, K * Row::kBits / 8, count * N},
                                scale + expert * scale_stride, output, N, K,
                                {begin + tile * kAll, end, static_cast<int>(expert * N) + first_row, first_row},
                                thread);
}

}  // namespace esimd_ops::xmx
