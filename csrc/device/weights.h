// Rows of a weight matrix, decoded a step at a time by one sub-group.
//
// A row type says how many elements each lane takes in a step (kPerLane), in which order (Order), whether each step has
// a scale of its own (kScaled, scale), and how to decode (decode).
// Number e of what lane `lane` decodes belongs to the activation in slot e * kSubGroupSize + lane. What decode returns
// multiplies the sum over the step: a shared scale then costs one multiplication, not one an element.
#pragma once

#include "kernel.h"

// Orders: the slot of element i of a step.
struct InOrder {
  static constexpr int slot(int i) { return i; }
  static void arrange(sycl::sub_group, int, float (&)[8]) {}
};

// Each lane takes the eight nibbles of one word.
struct NibbleOrder {
  static constexpr int slot(int i) { return i % 8 * kSubGroupSize + i / 8; }
  static void arrange(sycl::sub_group sub_group, int lane, float (&x)[8]) {
    float arranged[8] = {};
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const float value = sycl::select_from_group(sub_group, x[i / 8], lane % 2 * 8 + i % 8);
      arranged[i % 8] = lane / 2 == i / 8 ? value : arranged[i % 8];
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] = arranged[e];
  }
};

// A step of a token from element `first` on, laid out in the order of the rows that it meets; zeros from K on.
template <typename Order, typename Kept, typename Activation>
void lay_out(int64_t first, int64_t K, Kept* place, Activation activation) {
  const auto sub_group = this_item().get_sub_group();
  const int lane = sub_group.get_local_linear_id();
  const bool whole = first + kStep <= K;
  float x[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int64_t k = first + e * kSubGroupSize + lane;
    x[e] = whole || k < K ? float(activation(k)) : 0.0f;
  }
  Order::arrange(sub_group, lane, x);
#pragma unroll
  for (int e = 0; e < 8; ++e) place[e * kSubGroupSize + lane] = Kept(x[e]);
}

// Unsigned nibbles, zero point 8, one fp16 scale for 128 elements; element 8j+z sits in bits 4z..4z+3 of word j.
// A step is one group: 16 lanes load 16 neighbouring words.
struct Int4Row {
  using Order = NibbleOrder;
  static constexpr int kPerLane = 8;
  static constexpr bool kScaled = true;
  static_assert(kStep == kInt4Group);

  const uint32_t* words;
  const half* scales;

  static Int4Row at(const void* weight, const void* scale, int64_t row, int64_t K) {
    return {static_cast<const uint32_t*>(weight) + row * (K / 8),
            static_cast<const half*>(scale) + row * (K / kInt4Group)};
  }

  float scale(int64_t step) const { return static_cast<float>(scales[step]); }

  float decode(int64_t k, int lane, int64_t, float scale, float (&w)[kPerLane]) const {
    look_up(words[k / kPerLane + lane], lane - 8.0f, w);
    return scale;
  }

  // Lane u has what nibble u stands for.
  static void look_up(uint32_t word, float value, float (&w)[kPerLane]) {
    const auto sub_group = this_item().get_sub_group();
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) w[e] = sycl::select_from_group(sub_group, value, word >> 4 * e & 15u);
  }
};

// The same matrix with each weight rounded to half before it is used: the contract of the int4 GEMM.
struct Int4RoundedRow : Int4Row {
  static Int4RoundedRow at(const void* weight, const void* scale, int64_t row, int64_t K) {
    return {Int4Row::at(weight, scale, row, K)};
  }

  // A group has 16 different weights: lane u rounds the one of nibble u, for all.
  float decode(int64_t k, int lane, int64_t, float scale, float (&w)[kPerLane]) const {
    look_up(words[k / kPerLane + lane], static_cast<float>(half((lane - 8.0f) * scale)), w);
    return 1.0f;
  }
};

// One element after the other, any K and any alignment: neighbouring lanes read neighbouring elements.
// A format says how an element is stored, and that value(element) * kFactor is the weight.
template <typename Format>
struct ElementRow {
  using Order = InOrder;
  static constexpr int kPerLane = 8;
  static constexpr bool kScaled = false;

  const typename Format::Element* elements;

  static ElementRow at(const void* weight, const void*, int64_t row, int64_t K) {
    return {static_cast<const typename Format::Element*>(weight) + row * K};
  }

  float decode(int64_t k, int lane, int64_t K, float, float (&w)[kPerLane]) const {
    // Asked for each element, whether it is in the row costs more than the load.
    if (k + kStep <= K) {
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) w[e] = Format::value(elements[k + e * kSubGroupSize + lane]);
    } else {
#pragma unroll
      for (int e = 0; e < kPerLane; ++e) {
        const int64_t i = k + e * kSubGroupSize + lane;
        w[e] = i < K ? Format::value(elements[i]) : 0.0f;
      }
    }
    return Format::kFactor;
  }
};

struct Half {
  using Element = half;
  static constexpr float kFactor = 1.0f;
  static float value(half element) { return static_cast<float>(element); }
};

using HalfRow = ElementRow<Half>;

// What a whole row's sum is multiplied by.
struct Unscaled {
  static float of(const void*, int64_t) { return 1.0f; }
};

template <typename T>
struct RowScale {
  static float of(const void* scale, int64_t row) { return static_cast<float>(static_cast<const T*>(scale)[row]); }
};

struct TensorScale {
  static float of(const void* scale, int64_t) { return *static_cast<const float*>(scale); }
};
