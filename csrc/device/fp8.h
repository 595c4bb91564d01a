// Rows of 8-bit floating point weights. The original library decodes them in four ways; each operator keeps its own.
#pragma once

#include "weights.h"

// value(byte) * kFactor is the weight; the factor is applied to sums, where it costs nothing.
//
// E4M3 has bias 7 and no infinities: the bits of a half with bias 15, so that subnormals come out exact. The NaN codes
// 0x7F and 0xFF are +-480, as in the original.
struct E4M3 {
  using Element = uint8_t;
  static constexpr float kFactor = 0x1p8f;
  static float value(uint32_t byte) {
    const uint32_t bits = ((byte & 0x80u) << 8) | ((byte & 0x7Fu) << 7);
    return static_cast<float>(sycl::bit_cast<half>(static_cast<uint16_t>(bits)));
  }
};

// E5M2 is the upper byte of a half, infinities and NaNs included.
struct E5M2 {
  using Element = uint8_t;
  static constexpr float kFactor = 1.0f;
  static float value(uint32_t byte) {
    return static_cast<float>(sycl::bit_cast<half>(static_cast<uint16_t>(byte << 8)));
  }
};

// As Format, but what has no exponent (zeros and subnormals) is zero. Without a comparison, which the compiler may turn
// into a branch that each lane takes on its own.
template <typename Format, int32_t kExponent>
struct Flush {
  using Element = uint8_t;
  static constexpr float kFactor = Format::kFactor;
  static float value(uint32_t byte) {
    const int32_t all_ones_or_zero = -static_cast<int32_t>(byte & kExponent) >> 31;
    return Format::value(byte & all_ones_or_zero);
  }
};

using E4M3Flush = Flush<E4M3, 0x78>;  // loses 14 codes
using E5M2Flush = Flush<E5M2, 0x7C>;  // loses 6 codes

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
