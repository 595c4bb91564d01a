// dpas: C + A x B on the matrix engine of Xe2, with 16 lanes.
//
// A is Rep x K row by row. B is K x 16, of which a 32-bit word holds, for one column, as many consecutive rows as fit
// ("VNNI"). K is 8 words deep. C and the result are Rep x 16 row by row.
#pragma once
#include "../operators.hpp"
#include "common.hpp"

namespace sycl::ext::intel::esimd::xmx {

namespace detail {

using namespace sycl::ext::intel::esimd::detail;

template <class T>
constexpr dpas_argument_type format_of() {
  if constexpr (std::is_same_v<T, sycl::half>) return dpas_argument_type::fp16;
  else if constexpr (std::is_same_v<T, sycl::ext::oneapi::bfloat16>) return dpas_argument_type::bf16;
  else if constexpr (std::is_same_v<T, sycl::ext::intel::experimental::esimd::tfloat32>) return dpas_argument_type::tf32;
  else if constexpr (std::is_same_v<T, unsigned char>) return dpas_argument_type::u8;
  else if constexpr (std::is_same_v<T, char> || std::is_same_v<T, signed char>) return dpas_argument_type::s8;
  else return dpas_argument_type::Invalid;
}
constexpr int bits_of(dpas_argument_type format) {
  switch (format) {
    case dpas_argument_type::u2: case dpas_argument_type::s2: return 2;
    case dpas_argument_type::u4: case dpas_argument_type::s4: return 4;
    case dpas_argument_type::u8: case dpas_argument_type::s8: return 8;
    case dpas_argument_type::bf16: case dpas_argument_type::fp16: return 16;
    case dpas_argument_type::tf32: return 32;
    default: return 0;
  }
}
constexpr bool is_integer(dpas_argument_type format) {
  return bits_of(format) > 0 && bits_of(format) <= 8;
}

// Element i of packed memory, as a number.
template <dpas_argument_type Format>
ESIMD_HOST_REGISTERS inline auto number(const void* memory, int i) {
  constexpr int bits = bits_of(Format);
  const auto* bytes = static_cast<const unsigned char*>(memory);
  if constexpr (is_integer(Format)) {
    const int raw = bytes[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
    constexpr bool is_signed = Format == dpas_argument_type::s2 || Format == dpas_argument_type::s4 ||
                               Format == dpas_argument_type::s8;
    return is_signed && raw >> (bits - 1) ? raw - (1 << bits) : raw;
  } else {
    using T = std::conditional_t<Format == dpas_argument_type::fp16, sycl::half,
                                 std::conditional_t<Format == dpas_argument_type::bf16, sycl::ext::oneapi::bfloat16, float>>;
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    return static_cast<float>(value);
  }
}

template <int Depth, int Rep, class T, class CT, dpas_argument_type BFormat, dpas_argument_type AFormat>
struct Shape {
  static_assert(Depth == 8, "dpas: the systolic depth is 8");
  static_assert(Rep >= 1 && Rep <= 8, "dpas: the repeat count is 1 to 8");
  static_assert(BFormat != dpas_argument_type::Invalid && AFormat != dpas_argument_type::Invalid,
                "dpas: the formats of A and B cannot be told from their types: name them");
  static_assert(is_integer(AFormat) == is_integer(BFormat) && (is_integer(AFormat) || AFormat == BFormat),
                "dpas: A and B are both integers, or both of one floating format");
  static_assert(!is_integer(AFormat) || ((std::is_same_v<T, int> || std::is_same_v<T, unsigned>) &&
                                         (std::is_same_v<CT, int> || std::is_same_v<CT, unsigned>)),
                "dpas: of integers, the result and C are int or unsigned");
  static_assert(AFormat != dpas_argument_type::fp16 || ((std::is_same_v<T, float> || std::is_same_v<T, sycl::half>) &&
                                                        (std::is_same_v<CT, float> || std::is_same_v<CT, sycl::half>)),
                "dpas: of half, the result and C are float or half");
  static_assert(AFormat != dpas_argument_type::tf32 || (std::is_same_v<T, float> && std::is_same_v<CT, float>),
                "dpas: of tf32, the result and C are float");

  static constexpr int a_bits = bits_of(AFormat), b_bits = bits_of(BFormat);
  static constexpr int widest = a_bits > b_bits ? a_bits : b_bits;
  static constexpr int per_word = 32 / widest > 8 ? 8 : 32 / widest;
  static constexpr int K = Depth * per_word;
  static constexpr int lanes = 16;
};

template <int Depth, int Rep, class T, class BT, class AT, dpas_argument_type BFormat, dpas_argument_type AFormat, class CT,
          int BN, int AN>
ESIMD_HOST_REGISTERS inline simd<T, Rep * 16> multiply(const simd<CT, Rep * 16>& C, const simd<BT, BN>& B,
                                                       const simd<AT, AN>& A) {
  using S = Shape<Depth, Rep, T, CT, BFormat, AFormat>;
  constexpr int lanes = S::lanes, per_word = S::per_word;
  static_assert(BN * int(sizeof(BT)) * 8 == S::K * lanes * S::b_bits, "dpas: B has the wrong size for 16 lanes, as Xe2 has");
  static_assert(AN * int(sizeof(AT)) * 8 == Rep * S::K * S::a_bits, "dpas: A has the wrong size");
  using Sum = std::conditional_t<is_integer(AFormat), int, float>;
  Sum b[S::K][lanes];
  for (int k = 0; k < S::K; ++k) {
    for (int n = 0; n < lanes; ++n) {
      b[k][n] = number<BFormat>(B.storage(), (k / per_word * lanes + n) * per_word + k % per_word);
    }
  }
  simd<T, Rep * lanes> made{Raw()};
  for (int m = 0; m < Rep; ++m) {
    Sum sum[lanes];
    for (int n = 0; n < lanes; ++n) sum[n] = Sum(native_t<CT>(C.at(m * lanes + n)));
    for (int k = 0; k < S::K; ++k) {
      const Sum a = number<AFormat>(A.storage(), m * S::K + k);
      for (int n = 0; n < lanes; ++n) sum[n] += a * b[k][n];
    }
    for (int n = 0; n < lanes; ++n) made.at(m * lanes + n) = element_cast<T>(sum[n]);
  }
  return made;
}

}  // namespace detail

template <int Depth, int Rep, class T, class CT, class BT, class AT,
          dpas_argument_type BFormat = detail::format_of<BT>(), dpas_argument_type AFormat = detail::format_of<AT>(), int N,
          int BN, int AN>
inline simd<T, N> dpas(simd<CT, N> C, simd<BT, BN> B, simd<AT, AN> A) {
  static_assert(N == Rep * 16, "dpas: C has the wrong size for 16 lanes, as Xe2 has");
  return detail::multiply<Depth, Rep, T, BT, AT, BFormat, AFormat>(C, B, A);
}
template <int Depth, int Rep, class T, class BT, class AT, dpas_argument_type BFormat = detail::format_of<BT>(),
          dpas_argument_type AFormat = detail::format_of<AT>(), int BN, int AN>
inline auto dpas(simd<BT, BN> B, simd<AT, AN> A) {
  return detail::multiply<Depth, Rep, T, BT, AT, BFormat, AFormat>(simd<T, Rep * 16>(T(0)), B, A);
}

}  // namespace sycl::ext::intel::esimd::xmx
