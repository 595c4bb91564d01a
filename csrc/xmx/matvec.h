// One token times weight rows, in fp32: the weights come by messages of two dimensions, 512 bytes each, for 16 rows.
#pragma once

#include "xmx/rows.h"

namespace esimd_ops::xmx {

inline constexpr int kLocalBytes = 2 * kXmxThreads * kSumBytes;  // of a work-group, which has one or two sets of sums

// This thread's part of the sums of 16 rows.
template <typename Row, typename Input>
SYCL_ESIMD_FUNCTION Sums part_of_sums(const Input* input, const void* weight, const void* scale, int64_t N, int64_t K,
                                      int first_row, int thread) {
  constexpr int kMessage = 8 * 32 / Row::kBits;                 // elements of a row
  constexpr int kWords = kMessage < 32 ? 4 : kStep / kMessage;  // messages on the way at once
  constexpr int kWidth = 64 / sizeof(Input);                    // elements of the token in a message
  const Surface<Input> token(input, K * sizeof(Input), 1);
  const Surface<uint32_t> weights(weight, K * Row::kBits / 8, N);

  Sums sum = 0.0f;
  for (int begin = thread * kStep; begin < K; begin += kXmxThreads * kStep) {
    const Row row = Row::at(scale, first_row, N, K, begin);
    simd<float, kStep> x;
#pragma unroll
    for (int i = 0; i < kStep; i += kWidth)
      x.template select<kWidth, 1>(i) = esimd::convert<float>(token.template load<kWidth, 1, 1, false>(begin + i, 0));
    Sums step = 0.0f;
#pragma unroll
    for (int first = 0; first < kStep; first += kWords * kMessage) {
      Words words[kWords];
#pragma unroll
      for (int m = 0; m < kWords; ++m)
        words[m] = weights.template load<8, kRows, 1, true>((begin + first) * Row::kBits / 32 + 8 * m, first_row);
#pragma unroll
      for (int at = 0; at < kWords * kMessage; at += kElements) {
        Words tile = row.tile(words[at / kMessage], at % kMessage / kElements);
        Pairs<half> pairs = tile.bit_cast_view<half>();
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
          const simd<half, kRows> weight = pairs.template select<kRows, 2>(e / 2 * 2 * kRows + e % 2);
          const float activation = x[first + at + e];
          step += esimd::convert<float>(weight) * activation;
        }
      }
    }
    if constexpr (Row::kScaled) {
      sum += step * row.factor;
    } else {
      sum += step;
    }
  }
  return sum;
}

// output [N] = input [K] times weight [N, K]. A work-group takes 16 rows; its threads share the steps.
template <typename Row, typename Scale, typename Input>
SYCL_ESIMD_FUNCTION void matvec(const Input* input, const void* weight, const void* scale, half* output, int64_t N,
                                int64_t K, int64_t group, int thread) {
  const int first_row = group * kRows;
  esimd::slm_block_store<float, kRows>(thread * kSumBytes,
                                       part_of_sums<Row>(input, weight, scale, N, K, first_row, thread));
  esimd::barrier();
  if (thread == 0)
    store(output, first_row, N, of_all_threads(0, kSumBytes) * Scale::of(scale, first_row, N));
}

SYCL_ESIMD_FUNCTION inline int64_t groups_of(int64_t N) { return (N + kRows - 1) / kRows; }

// Up to three matrices of one kind with a shared input. An absent one has N = 0.
template <typename Input, typename Row, typename Scale>
SYCL_ESIMD_FUNCTION void matvecs(const Input* input, const void* w0, const void* s0, half* o0, int64_t N0,
                                 const void* w1, const void* s1, half* o1, int64_t N1, const void* w2, const void* s2,
                                 half* o2, int64_t N2, int64_t K, int64_t group, int thread) {
  esimd::slm_init<kLocalBytes>();
  const int64_t first1 = groups_of(N0);
  const int64_t first2 = first1 + groups_of(N1);
  const bool in0 = group < first1, in1 = group < first2;
  matvec<Row, Scale>(input, in0 ? w0 : in1 ? w1 : w2, in0 ? s0 : in1 ? s1 : s2, in0 ? o0 : in1 ? o1 : o2,
                     in0 ? N0 : in1 ? N1 : N2, K, in0 ? group : in1 ? group - first1 : group - first2, thread);
}

// Two matrices of different kinds, neither with a scale outside its rows.
template <typename Row0, typename Row1>
SYCL_ESIMD_FUNCTION void mixed(const half* input, const void* w0, const void* s0, half* o0, int64_t N0, const void* w1,
                               const void* s1, half* o1, int64_t N1, int64_t K, int64_t group, int thread) {
  esimd::slm_init<kLocalBytes>();
  const int64_t first1 = groups_of(N0);
  if (group < first1) {
    matvec<Row0, Unscaled>(input, w0, s0, o0, N0, K, group, thread);
  } else {
    matvec<Row1, Unscaled>(input, w1, s1, o1, N1, K, group - first1, thread);
  }
}

// output[n] = gelu_tanh(input @ weight[n]) * (input @ weight[N + n]). The exponential's argument is kept where it is
// finite.
template <typename Row>
SYCL_ESIMD_FUNCTION void gelu_mul(const half* input, const void* weight, half* output, int64_t N, int64_t K,
                                  int64_t group, int thread) {
  constexpr int kUp = kXmxThreads * kSumBytes;
  constexpr float kLog2E = 1.4426950409f;
  esimd::slm_init<kLocalBytes>();
  const int first_row = group * kRows;
  esimd::slm_block_store<float, kRows>(thread * kSumBytes,
                                       part_of_sums<Row>(input, weight, nullptr, N, K, first_row, thread));
  esimd::slm_block_store<float, kRows>(
      kUp + thread * kSumBytes,
      part_of_sums<Row>(input, weight, nullptr, 2 * N, K, static_cast<int>(N) + first_row, thread));
  esimd::barrier();
  if (thread != 0) return;
  const Sums gate = of_all_threads(0, kSumBytes);
  const Sums t = 0.7978845608f * (gate + 0.044715f * gate * gate * gate);
  const Sums bounded = esimd::max(Sums(-30.0f), esimd::min(Sums(30.0f), Sums(2.0f * t)));
  const Sums e = esimd::exp2(Sums(bounded * kLog2E));
  store(output, first_row, N, 0.5f * gate * (1.0f + (e - 1.0f) / (e + 1.0f)) * of_all_threads(kUp, kSumBytes));
}

}  // namespace esimd_ops::xmx
