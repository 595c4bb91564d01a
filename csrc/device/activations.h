// Activation functions, fp32.
#pragma once

#include "kernel.h"

inline float sigmoid(float x) { return 1.0f / (1.0f + sycl::exp(-x)); }

inline float silu(float x) { return x / (1.0f + sycl::exp(-x)); }

// tanh by one exponential, whose argument is kept where it is finite; outside, tanh is +-1 in any precision used here.
inline float gelu_tanh(float x) {
  const float t = 0.7978845608f * (x + 0.044715f * x * x * x);
  const float e = sycl::exp(sycl::clamp(2.0f * t, -30.0f, 30.0f));
  return 0.5f * x * (1.0f + (e - 1.0f) / (e + 1.0f));
}
