// Rows of 8-bit floating point weights. The original library decodes them in four ways; each operator keeps its own.
#pragma once

#include "weights.h"

// A byte as the bits of a half; value(byte) * kFactor is the weight. The factor is applied to sums, where it costs
// nothing. In 16 bits throughout: what becomes a half need not be narrowed first.
//
// E4M3 has bias 7 and no infinities: the bits of a half with bias 15, so that subnormals come out exact. The NaN codes
// 0x7F and 0xFF are +-480, as in the original.
struct E4M3 {
  using Element = uint8_t;
  static constexpr float kFactor = 0x1p8f;
  static constexpr uint16_t kExponent = 0x3C00;
  static uint16_t bits(uint8_t byte) { return static_cast<int8_t>(byte) << 7 & 0xBF80; }
  static float value(uint8_t byte) { return static_cast<float>(sycl::bit_cast<half>(bits(byte))); }
};

// E5M2 is the upper byte of a half, infinities and NaNs included.
struct E5M2 {
  using Element = uint8_t;
  static constexpr float kFactor = 1.0f;
  static constexpr uint16_t kExponent = 0x7C00;
  static uint16_t bits(uint8_t byte) { return byte << 8; }
  static float value(uint8_t byte) { return static_cast<float>(sycl::bit_cast<half>(bits(byte))); }
};

// As Format, but what has no exponent (zeros and subnormals) is zero.
template <typename Format>
struct Flush {
  using Element = uint8_t;
  static constexpr float kFactor = Format::kFactor;
  static float value(uint8_t byte) { return Format::bits(byte) & Format::kExponent ? Format::value(byte) : 0.0f; }
};

using E4M3Flush = Flush<E4M3>;  // loses 14 codes
using E5M2Flush = Flush<E5M2>;  // loses 6 codes

template <typename Format>
using Fp8Row = ElementRow<Format>;

// Exact E4M3 with one fp32 scale for each block of 128 x 128; K is a whole number of blocks.
struct Fp8BlockRow : Fp8Row<E4M3> {
  static constexpr bool kScaled = true;
  static_assert(kStep == kFp8Block);

  const float* scales;

  static Fp8BlockRow at(const void* weight, const void* scale, int64_t row, int64_t K) {
    return {Fp8Row<E4M3>::at(weight, nullptr, row, K),
            static_cast<const float*>(scale) + row / kFp8Block * (K / kFp8Block)};
  }

  float scale(int64_t step) const { return scales[step]; }

  float decode(int64_t k, int lane, int64_t K, float scale, float (&w)[kPerLane]) const {
    return scale * Fp8Row<E4M3>::decode(k, lane, K, scale, w);
  }
};
