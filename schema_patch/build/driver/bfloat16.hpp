// Conversions of bfloat16, which SYCL's headers declare: a part of device_library.cpp; the front end of 2026, which has the
// rest of that library in itself, is given it before each source.
#pragma once

#ifdef __SYCL_DEVICE_ONLY__
#define SCHEMA_PATCH_BFLOAT16 extern "C" __attribute__((sycl_device, weak))

namespace schema_patch {

// bfloat16 is the upper half of a float. To the nearest, ties to even; every NaN becomes the one below.
inline constexpr unsigned short kNaN = 0xFFC1;

static unsigned short narrowed(float x) {
  if (x != x) return kNaN;
  const unsigned int bits = __builtin_bit_cast(unsigned int, x);
  return static_cast<unsigned short>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float widened(unsigned short x) { return __builtin_bit_cast(float, static_cast<unsigned int>(x) << 16); }

}  // namespace schema_patch

SCHEMA_PATCH_BFLOAT16 unsigned short __devicelib_ConvertFToBF16INTEL(const float& x) noexcept { return schema_patch::narrowed(x); }
SCHEMA_PATCH_BFLOAT16 float __devicelib_ConvertBF16ToFINTEL(const unsigned short& x) noexcept { return schema_patch::widened(x); }

#define VECTOR(n)                                                                       \
  SCHEMA_PATCH_BFLOAT16 void __devicelib_ConvertFToBF16INTELVec##n(const float* from, unsigned short* to) noexcept {      \
    for (int i = 0; i < n; ++i) to[i] = schema_patch::narrowed(from[i]);                              \
  }                                                                                     \
  SCHEMA_PATCH_BFLOAT16 void __devicelib_ConvertBF16ToFINTELVec##n(const unsigned short* from, float* to) noexcept {      \
    for (int i = 0; i < n; ++i) to[i] = schema_patch::widened(from[i]);                               \
  }
VECTOR(1)
VECTOR(2)
VECTOR(3)
VECTOR(4)
VECTOR(8)
VECTOR(16)
#endif
