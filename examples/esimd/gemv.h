// What the right and the wrong kernel share: one token, its residual added, RMS-normed, times one row of fp8 weights.
#pragma once
#include <sycl/sycl.hpp>
#include <sycl/ext/intel/esimd.hpp>

#include <cstdint>

using fp16 = sycl::half;
using namespace sycl::ext::intel::esimd;

constexpr int kChunk = 128;

struct Arguments {
  const fp16* hidden;       // [K]
  fp16* residual;           // [K]
  const fp16* norm_weight;  // [K]
  const uint8_t* weight;    // [N, K], E4M3 or E5M2
  const float* scale;       // [1]
  fp16* output;             // [N]
  fp16* normed;             // [K]
  int N, K;
  float eps;
  bool e5m2;
};

SYCL_ESIMD_FUNCTION inline simd<float, kChunk> added(const Arguments& a, int k) {
  simd<float, kChunk> hidden = block_load<fp16, kChunk>(a.hidden + k);
  simd<float, kChunk> residual = block_load<fp16, kChunk>(a.residual + k);
  return hidden + residual;
}

SYCL_ESIMD_FUNCTION inline float inverse_rms(const Arguments& a) {
  float sum = 0;
  for (int k = 0; k < a.K; k += kChunk) {
    simd<float, kChunk> x = added(a, k);
    sum += reduce<float>(simd<float, kChunk>(x * x), std::plus<>());
  }
  return rsqrt(simd<float, 1>(sum / a.K + a.eps))[0];
}

SYCL_ESIMD_FUNCTION inline simd<float, kChunk> normed(const Arguments& a, int k, float inverse) {
  simd<float, kChunk> weight = block_load<fp16, kChunk>(a.norm_weight + k);
  return added(a, k) * inverse * weight;
}

// E4M3: the bits of a half-precision number that is 256 times too small. E5M2: the upper half of one.
SYCL_ESIMD_FUNCTION inline simd<float, kChunk> decoded(const Arguments& a, const uint8_t* p) {
  simd<uint16_t, kChunk> bits = block_load<uint8_t, kChunk>(p);
  simd<uint16_t, kChunk> half_bits;
  if (a.e5m2) half_bits = bits << 8;
  else half_bits = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7);
  simd<float, kChunk> values = half_bits.bit_cast_view<fp16>().read();
  return a.e5m2 ? values : values * 256.0f;
}

SYCL_ESIMD_FUNCTION inline float product(const Arguments& a, int n, float inverse) {
  simd<float, kChunk> sum = 0.0f;
  for (int k = 0; k < a.K; k += kChunk) sum += normed(a, k, inverse) * decoded(a, a.weight + size_t(n) * a.K + k);
  return reduce<float>(sum, std::plus<>()) * a.scale[0];
}

// Stores the new residual and the normed row.
SYCL_ESIMD_FUNCTION inline void update(const Arguments& a, float inverse) {
  for (int k = 0; k < a.K; k += kChunk) {
    simd<fp16, kChunk> row = normed(a, k, inverse);
    simd<fp16, kChunk> sum = added(a, k);
    block_store<fp16, kChunk>(a.normed + k, row);
    block_store<fp16, kChunk>(a.residual + k, sum);
  }
}

void resadd_norm_gemv_right(sycl::queue& queue, Arguments arguments);
void resadd_norm_gemv_race(sycl::queue& queue, Arguments arguments);
