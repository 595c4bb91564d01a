// Activation functions, fp32.
#pragma once

#include "kernel.h"

// e^x to 2e-7 of itself for x from -87 to 88.3; infinity above, e^-87 below. As 2^n e^r, with e^r by the polynomial of
// degree 5 whose largest relative error is least (1.1e-7 for r to half of ln 2). A CPU calls a function for sycl::exp.
inline float exponential(float x) {
  const float kept = x < -87.0f ? -87.0f : x > 88.8f ? 88.8f : x;  // a NaN stays one
  const float n = sycl::rint(kept * 1.4426950409f);
  const float r = kept - n * 0.693359375f + n * 2.12194440e-4f;
  const float tail = 0.4999923f + r * (0.16667114f + r * (0.04189016f + r * 8.3125206e-3f));
  // The sum's last bits are n + 127.
  const float power = sycl::bit_cast<float>(sycl::bit_cast<uint32_t>(n + (0x1.8p23f + 127.0f)) << 23);
  return (1.0f + r * (1.0f + r * tail)) * power;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

inline float silu(float x) { return x / (1.0f + exponential(-x)); }

template <size_t kEach>
sycl::marray<float, kEach> silu(sycl::marray<float, kEach> x) {
#pragma unroll
  for (float& each : x) each = silu(each);
  return x;
}

// tanh by one exponential, whose argument is kept where it is finite; outside, tanh is +-1 in any precision used here.
inline float gelu_tanh(float x) {
  const float t = 0.7978845608f * (x + 0.044715f * x * x * x);
  const float e = exponential(sycl::clamp(2.0f * t, -30.0f, 30.0f));
  return 0.5f * x * (1.0f + (e - 1.0f) / (e + 1.0f));
}
