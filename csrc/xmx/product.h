// Tokens times weight rows on a card's matrix engines (XMX). ESIMD: a work-item is a thread of the card, which works on
// whole vectors. Tests compile it for the host too, by the emulation of `esimd_ops host-build`.
//
// dpas adds tokens [8, 16 k] times weights [16 k, 16 rows] to sums [8, 16]. Both come by messages of two dimensions,
// which read zeros past the edges of a matrix: there may be any number of tokens, rows and k. What such a message asks
// of addresses and sizes is seen to in gemm/gemm.cpp.
#pragma once

#include <sycl/ext/intel/esimd.hpp>
#include <sycl/ext/intel/experimental/esimd/memory.hpp>

#include "device/tile.h"

namespace esimd_ops::xmx {

namespace esimd = sycl::ext::intel::esimd;
using esimd::simd;
using sycl::half;

// Of one dpas.
inline constexpr int kTokens = kXmxTokens;
inline constexpr int kRows = kXmxRows;
inline constexpr int kElements = 16;

using Sums = simd<float, kTokens * kRows>;
// 8 words of each of the 16 rows: all first words, all second words, … What a message brings, and what dpas takes, to
// which a word is two elements of a row.
using Words = simd<uint32_t, 8 * kRows>;
template <typename T>
using Pairs = simd<T, 2 * Words::length>;

// A matrix as messages of two dimensions see it: sizes in bytes and rows, less one.
template <typename T>
struct Surface {
  const T* data;
  uint32_t width, height;

  SYCL_ESIMD_FUNCTION Surface(const void* data, int64_t row_bytes, int64_t rows)
      : data(static_cast<const T*>(data)), width(row_bytes - 1), height(rows - 1) {}

  template <int kWidth, int kHeight, int kBlocks, bool kTransposed>
  SYCL_ESIMD_FUNCTION auto load(int x, int y) const {
    namespace lsc = sycl::ext::intel::experimental::esimd;
    return lsc::lsc_load_2d<T, kWidth, kHeight, kBlocks, kTransposed>(data, width, height, width, x, y);
  }
};

// Kinds of weights, called as those of device/weights.h: the bits of an element; `at`, for each step of kStep elements
// of 16 rows; and `tile`, elements 16 i to 16 i + 15 of a message as dpas takes them. kScaled: the sums of a step have
// a factor.
struct HalfRow {
  static constexpr int kBits = 16;
  static constexpr bool kScaled = false;
  static SYCL_ESIMD_FUNCTION HalfRow at(const void*, int64_t, int64_t, int64_t, int64_t) { return {}; }
  SYCL_ESIMD_FUNCTION Words tile(Words words, int) const { return words; }
};

// Exact: the bits of a half with another bias. The factor is applied here, so that no subnormal reaches dpas.
struct E4M3 {
  static SYCL_ESIMD_FUNCTION Words decoded(Words upper_bytes) {
    Words made = (upper_bytes & 0x80008000u) | ((upper_bytes >> 1) & 0x3F803F80u);
    Pairs<half> halves = made.bit_cast_view<half>();
    halves *= half(256.0f);
    return halves.bit_cast_view<uint32_t>();
  }
};

// What has no exponent is zero.
struct E5M2Flush {
  static SYCL_ESIMD_FUNCTION Words decoded(Words upper_bytes) {
    Pairs<uint16_t> halves = upper_bytes.bit_cast_view<uint16_t>();
    halves.merge(Pairs<uint16_t>(uint16_t(0)), (halves & uint16_t(0x7C00)) == uint16_t(0));
    return halves.bit_cast_view<uint32_t>();
  }
};

template <typename Format>
struct Fp8Row {
  static constexpr int kBits = 8;
  static constexpr bool kScaled = false;
  static SYCL_ESIMD_FUNCTION Fp8Row at(const void*, int64_t, int64_t, int64_t, int64_t) { return {}; }

  // The four bytes of a word become two words, each byte the upper half of a 16-bit number.
  SYCL_ESIMD_FUNCTION Words tile(Words words, int i) const {
    Words made;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      const simd<uint32_t, kRows> four = words.select<kRows, 1>((4 * i + d) * kRows);
      made.select<kRows, 1>(2 * d * kRows) = ((four << 8) & 0xFF00u) | ((four << 16) & 0xFF000000u);
      made.select<kRows, 1>((2 * d + 1) * kRows) = ((four >> 8) & 0xFF00u) | (four & 0xFF000000u);
    }
    return Format::decoded(made);
  }
};

struct Fp8BlockRow : Fp8Row<E4M3> {
  static constexpr bool kScaled = true;
  float factor;

  static SYCL_ESIMD_FUNCTION Fp8BlockRow at(const void* scale, int64_t row, int64_t, int64_t K, int64_t k) {
    return {{}, static_cast<const float*>(scale)[row / kFp8Block * (K / kFp8Block) + k / kFp8Block]};
  }
};

// Each weight rounded to half.
struct Int4RoundedRow {
  static constexpr int kBits = 4;
  static constexpr bool kScaled = false;
  simd<half, 2 * kRows> scales;  // of each row twice, as its elements lie

  static SYCL_ESIMD_FUNCTION Int4RoundedRow at(const void* scale, int64_t row, int64_t N, int64_t K, int64_t k) {
    const half* scales = static_cast<const half*>(scale) + k / kInt4Group;
    const simd<uint32_t, kRows> rows = esimd::min(simd<uint32_t, kRows>(row, 1), simd<uint32_t, kRows>(N - 1));
    const simd<half, kRows> found =
        esimd::gather<half, kRows>(scales, rows * static_cast<uint32_t>(K / kInt4Group * sizeof(half)));
    Int4RoundedRow made;
    made.scales.select<kRows, 2>(0) = found;
    made.scales.select<kRows, 2>(1) = found;
    return made;
  }

  SYCL_ESIMD_FUNCTION Words tile(Words words, int i) const {
    Words made;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      // Four nibbles in 16 bits: 12 bits further up, the second of a pair is in the upper half of the word.
      const simd<uint32_t, kRows> eight = words.select<kRows, 1>((2 * i + d / 2) * kRows);
      const simd<uint32_t, kRows> four = d % 2 ? eight >> 16 : eight & 0xFFFFu;
      const simd<uint32_t, kRows> pairs = four | (four << 12);
      // v in the low bits of the half 1024 makes it 1024 + v.
      made.select<kRows, 1>(2 * d * kRows) = (pairs & 0x000F000Fu) | 0x64006400u;
      made.select<kRows, 1>((2 * d + 1) * kRows) = ((pairs >> 8) & 0x000F000Fu) | 0x64006400u;
    }
    Pairs<half> halves = made.bit_cast_view<half>();
#pragma unroll
    for (int pair = 0; pair < 8; ++pair) {
      auto row = halves.select<2 * kRows, 1>(pair * 2 * kRows);
      row = (row - half(1032.0f)) * scales;
    }
    return halves.bit_cast_view<uint32_t>();
  }
};

// What all sums are multiplied by.
struct Unscaled {
  static SYCL_ESIMD_FUNCTION float of(const void*) { return 1.0f; }
};

struct TensorScale {
  static SYCL_ESIMD_FUNCTION float of(const void* scale) { return *static_cast<const float*>(scale); }
};

// Adds one step of 16 rows, from element `begin` on, to the sums of kBlocks times 8 tokens.
template <typename Row, int kBlocks>
SYCL_ESIMD_FUNCTION void add_step(const Surface<half>& tokens, const Surface<uint32_t>& weights, const Row& row,
                                  int first_token, int first_row, int begin, Sums (&sums)[kBlocks]) {
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

// output [M, N] = input [M, K] times weight [N, K].  A work-group takes 16 rows and kBlocks times 8 tokens; its threads
// share the steps, and add up their sums in local memory.
template <typename Row, typename Scale, int kBlocks>
SYCL_ESIMD_FUNCTION void product(const half* input, const void* weight, const void* scale, half* output, int64_t M,
                                 int64_t N, int64_t K, int64_t token_blocks, int64_t group, int thread) {
  constexpr int kAll = kBlocks * kTokens;
  constexpr int kBytes = kRows * sizeof(float);  // of a token's sums
  esimd::slm_init<kXmxThreads * kAll * kBytes>();
  const int first_token = group % token_blocks * kAll;
  const int first_row = group / token_blocks * kRows;
  const Surface<half> tokens(input, K * sizeof(half), M);
  const Surface<uint32_t> weights(weight, K * Row::kBits / 8, N);

  Sums sums[kBlocks];
#pragma unroll
  for (Sums& one : sums) one = 0.0f;
  for (int begin = thread * kStep; begin < K; begin += kXmxThreads * kStep) {
    const Row row = Row::at(scale, first_row, N, K, begin);
    if constexpr (Row::kScaled) {
      Sums step[kBlocks];
#pragma unroll
      for (Sums& one : step) one = 0.0f;
      add_step(tokens, weights, row, first_token, first_row, begin, step);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) sums[block] += step[block] * row.factor;
    } else {
      add_step(tokens, weights, row, first_token, first_row, begin, sums);
    }
  }

#pragma unroll
  for (int t = 0; t < kAll; ++t)
    esimd::slm_block_store<float, kRows>((thread * kAll + t) * kBytes,
                                         sums[t / kTokens].template select<kRows, 1>(t % kTokens * kRows));
  esimd::barrier();
  const float factor = Scale::of(scale);
  const simd<uint32_t, kRows> lanes(0, 1);
  for (int t = thread; t < kAll && first_token + t < M; t += kXmxThreads) {
    simd<float, kRows> sum = 0.0f;
#pragma unroll
    for (int other = 0; other < kXmxThreads; ++other)
      sum += esimd::slm_block_load<float, kRows>((other * kAll + t) * kBytes);
    esimd::scatter<half, kRows>(output + (first_token + t) * N + first_row, lanes * uint32_t(sizeof(half)),
                                esimd::convert<half>(sum * factor), lanes < static_cast<uint32_t>(N - first_row));
  }
}

}  // namespace esimd_ops::xmx
