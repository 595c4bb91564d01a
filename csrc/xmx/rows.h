// What the kernels for a card share: matrices as messages of two dimensions see them, and kinds of weights. ESIMD: a
// work-item is a thread of the card, which works on whole vectors. Tests compile it for the host too, by the emulation
// of `esimd_ops host-build`.
//
// Such messages read zeros past the edges of a matrix: there may be any number of tokens, rows and k. What they ask of
// addresses and sizes is seen to in xmx.cpp.
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

using Sums = simd<float, kRows>;  // of one token
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

// Numbers of the 16 rows from `first` on, those past the last one its own.
SYCL_ESIMD_FUNCTION inline simd<uint32_t, kRows> rows_from(int64_t first, int64_t N) {
  return esimd::min(simd<uint32_t, kRows>(first, 1), simd<uint32_t, kRows>(N - 1));
}

// Kinds of weights, called as those of device/weights.h: the bits of an element; `at`, for each step of kStep elements
// of 16 rows; and `tile`, elements 16 i to 16 i + 15 of a message as dpas takes them. kScaled: the sums of a step have
// a factor, one for all rows or for each.
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

struct E5M2 {
  static SYCL_ESIMD_FUNCTION Words decoded(Words upper_bytes) { return upper_bytes; }
};

// What has no exponent is zero.
template <typename Format, int32_t kExponent>
struct Flush {
  static SYCL_ESIMD_FUNCTION Words decoded(Words upper_bytes) {
    Pairs<uint16_t> halves = upper_bytes.bit_cast_view<uint16_t>();
    halves.merge(Pairs<uint16_t>(uint16_t(0)), (halves & uint16_t(kExponent)) == uint16_t(0));
    return Format::decoded(halves.bit_cast_view<uint32_t>());
  }
};

using E4M3Flush = Flush<E4M3, 0x7800>;
using E5M2Flush = Flush<E5M2, 0x7C00>;

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

// Sums of whole numbers, which a scale for each group of a row multiplies.
struct Int4Row {
  static constexpr int kBits = 4;
  static constexpr bool kScaled = true;
  Sums factor;

  static SYCL_ESIMD_FUNCTION Int4Row at(const void* scale, int64_t row, int64_t N, int64_t K, int64_t k) {
    return {esimd::convert<float>(scales(scale, row, N, K, k))};
  }

  static SYCL_ESIMD_FUNCTION simd<half, kRows> scales(const void* scale, int64_t row, int64_t N, int64_t K, int64_t k) {
    return esimd::gather<half, kRows>(static_cast<const half*>(scale) + k / kInt4Group,
                                      rows_from(row, N) * static_cast<uint32_t>(K / kInt4Group * sizeof(half)));
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
    halves -= half(1032.0f);
    return halves.bit_cast_view<uint32_t>();
  }
};

// Each weight rounded to half.
struct Int4RoundedRow {
  static constexpr int kBits = 4;
  static constexpr bool kScaled = false;
  simd<half, 2 * kRows> scales;  // of each row twice, as its elements lie

  static SYCL_ESIMD_FUNCTION Int4RoundedRow at(const void* scale, int64_t row, int64_t N, int64_t K, int64_t k) {
    const simd<half, kRows> found = Int4Row::scales(scale, row, N, K, k);
    Int4RoundedRow made;
    made.scales.select<kRows, 2>(0) = found;
    made.scales.select<kRows, 2>(1) = found;
    return made;
  }

  SYCL_ESIMD_FUNCTION Words tile(Words words, int i) const {
    Words numbers = Int4Row{}.tile(words, i);
    Pairs<half> halves = numbers.bit_cast_view<half>();
#pragma unroll
    for (int pair = 0; pair < 8; ++pair) {
      auto row = halves.select<2 * kRows, 1>(pair * 2 * kRows);
      row = row * scales;
    }
    return halves.bit_cast_view<uint32_t>();
  }
};

// What the sums of 16 rows are multiplied by.
struct Unscaled {
  static SYCL_ESIMD_FUNCTION float of(const void*, int64_t, int64_t) { return 1.0f; }
};

struct TensorScale {
  static SYCL_ESIMD_FUNCTION float of(const void* scale, int64_t, int64_t) { return *static_cast<const float*>(scale); }
};

template <typename T>
struct RowScale {
  static SYCL_ESIMD_FUNCTION Sums of(const void* scale, int64_t row, int64_t N) {
    const simd<uint32_t, kRows> places = rows_from(row, N) * uint32_t(sizeof(T));
    return esimd::convert<float>(esimd::gather<T, kRows>(static_cast<const T*>(scale), places));
  }
};

// What a work-group keeps in local memory: sums of each thread.
inline constexpr int kSumBytes = kRows * sizeof(float);

// The sums of all threads, which lie `stride` bytes apart.
SYCL_ESIMD_FUNCTION inline Sums of_all_threads(int first, int stride) {
  Sums sum = 0.0f;
#pragma unroll
  for (int thread = 0; thread < kXmxThreads; ++thread)
    sum += esimd::slm_block_load<float, kRows>(first + thread * stride);
  return sum;
}

// To rows of the output, those that there are.
SYCL_ESIMD_FUNCTION inline void store(half* output, int64_t first_row, int64_t N, Sums sum) {
  const simd<uint32_t, kRows> lanes(0, 1);
  esimd::scatter<half, kRows>(output + first_row, lanes * uint32_t(sizeof(half)), esimd::convert<half>(sum),
                              lanes < static_cast<uint32_t>(N - first_row));
}

}  // namespace esimd_ops::xmx
