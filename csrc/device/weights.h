// Rows of a weight matrix, decoded a step at a time by one sub-group.
//
// A row type says how many elements each lane takes in a step (kPerLane), in which order (Order), whether each step has
// a scale of its own (kScaled, scale), how many rows are best read together (kTogether), and how to decode (decode).
// Number e of what lane `lane` decodes belongs to the activation in slot e * kSubGroupSize + lane. What decode returns
// multiplies the sum over the step: a shared scale then costs one multiplication, not one an element.
#pragma once

#include "kernel.h"

// Orders: the slot of element i of a step.
struct InOrder {
  static constexpr int slot(int i) { return i; }
};

// Each lane takes the eight nibbles of one word.
struct NibbleOrder {
  static constexpr int slot(int i) { return i % 8 * kSubGroupSize + i / 8; }
};

// Unsigned nibbles, zero point 8, one fp16 scale for 128 elements; element 8j+z sits in bits 4z..4z+3 of word j.
// A step is one group: 16 lanes load 16 neighbouring words.
struct Int4Row {
  using Order = NibbleOrder;
  static constexpr int kPerLane = 8;
  static constexpr bool kScaled = true;
  static constexpr int kTogether = 8;
  static_assert(kStep == kInt4Group);
  // A nibble need not be shifted down to become a float where the 23 bits of the fraction hold it: decode gives 16^z
  // times its value, and the activation is divided by that. Both are exact.
  static constexpr int kUnshifted = 5;

  const uint32_t* words;
  const half* scales;

  static Int4Row at(const void* weight, const void* scale, int64_t row, int64_t K) {
    return {static_cast<const uint32_t*>(weight) + row * (K / 8),
            static_cast<const half*>(scale) + row * (K / kInt4Group)};
  }

  // What the activation of element i has to be multiplied by.
  static float prescale(int i) { return sycl::bit_cast<float>((127 - 4 * (i % kPerLane % kUnshifted)) << 23); }

  float scale(int64_t step) const { return static_cast<float>(scales[step]); }

  float decode(int64_t k, int lane, int64_t, float scale, float (&w)[kPerLane]) const {
    const uint32_t word = words[k / kPerLane + lane];
    const uint32_t rest = word >> 4 * kUnshifted;
    // v in the low bits of the float 2^23 makes it 2^23 + v: cheaper than a conversion, and as exact.
    constexpr uint32_t kTwoTo23 = 0x4B000000u;
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) {
      const int place = e % kUnshifted;
      const uint32_t nibble = (e < kUnshifted ? word : rest) & (15u << 4 * place);
      w[e] = sycl::bit_cast<float>(kTwoTo23 | nibble) - (0x1p23f + (8 << 4 * place));
    }
    return scale;
  }
};

// The same matrix with each weight rounded to half before it is used: the contract of the int4 GEMM.
struct Int4RoundedRow : Int4Row {
  static Int4RoundedRow at(const void* weight, const void* scale, int64_t row, int64_t K) {
    return {Int4Row::at(weight, scale, row, K)};
  }

  static constexpr float prescale(int) { return 1.0f; }

  // A group has 16 different weights: lane u rounds the one of nibble u, for all.
  float decode(int64_t k, int lane, int64_t, float scale, float (&w)[kPerLane]) const {
    const uint32_t word = words[k / kPerLane + lane];
    const float rounded = static_cast<float>(half((lane - 8.0f) * scale));
    const auto sub_group = this_item().get_sub_group();
#pragma unroll
    for (int e = 0; e < kPerLane; ++e) w[e] = sycl::select_from_group(sub_group, rounded, word >> 4 * e & 15u);
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
  // What takes long to decode shares the activations' loads; else one stream of memory is the fastest.
  static constexpr int kTogether = sizeof(typename Format::Element) == 1 ? 8 : 1;

  const typename Format::Element* elements;

  static ElementRow at(const void* weight, const void*, int64_t row, int64_t K) {
    return {static_cast<const typename Format::Element*>(weight) + row * K};
  }

  static constexpr float prescale(int) { return 1.0f; }

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
