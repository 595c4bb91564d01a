// What device code calls and no header defines: the C library's mathematics, moving of memory, assertions, bfloat16.
//
// Compiled by the front end itself and linked by it to every module that needs it, in the place of the libsycl-*.bc that
// come with a whole compiler and not with its runtime. The mathematics are those of SPIR-V's extended instructions, with
// the accuracy that OpenCL asks of a device.

#include <sycl/__spirv/spirv_vars.hpp>

#define LIBRARY extern "C" __attribute__((sycl_device, weak))

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;

#define ONE(name, call)                                        \
  LIBRARY float name##f(float x) { return __spirv_ocl_##call(x); } \
  LIBRARY double name(double x) { return __spirv_ocl_##call(x); }
#define TWO(name, call)                                                    \
  LIBRARY float name##f(float x, float y) { return __spirv_ocl_##call(x, y); } \
  LIBRARY double name(double x, double y) { return __spirv_ocl_##call(x, y); }

#ifdef SCHEMA_PATCH_MATHEMATICS
ONE(acos, acos)
ONE(acosh, acosh)
ONE(asin, asin)
ONE(asinh, asinh)
ONE(atan, atan)
ONE(atanh, atanh)
ONE(cbrt, cbrt)
ONE(ceil, ceil)
ONE(cos, cos)
ONE(cosh, cosh)
ONE(cospi, cospi)
ONE(erf, erf)
ONE(erfc, erfc)
ONE(exp, exp)
ONE(exp10, exp10)
ONE(exp2, exp2)
ONE(expm1, expm1)
ONE(fabs, fabs)
ONE(floor, floor)
ONE(lgamma, lgamma)
ONE(log, log)
ONE(log10, log10)
ONE(log1p, log1p)
ONE(log2, log2)
ONE(logb, logb)
ONE(nearbyint, rint)
ONE(rint, rint)
ONE(round, round)
ONE(rsqrt, rsqrt)
ONE(sin, sin)
ONE(sinh, sinh)
ONE(sinpi, sinpi)
ONE(sqrt, sqrt)
ONE(tan, tan)
ONE(tanh, tanh)
ONE(tgamma, tgamma)
ONE(trunc, trunc)

TWO(atan2, atan2)
TWO(copysign, copysign)
TWO(fdim, fdim)
TWO(fmax, fmax)
TWO(fmin, fmin)
TWO(fmod, fmod)
TWO(hypot, hypot)
TWO(nextafter, nextafter)
TWO(pow, pow)
TWO(remainder, remainder)

LIBRARY float fmaf(float x, float y, float z) { return __spirv_ocl_fma(x, y, z); }
LIBRARY double fma(double x, double y, double z) { return __spirv_ocl_fma(x, y, z); }
LIBRARY float frexpf(float x, int* e) { return __spirv_ocl_frexp(x, e); }
LIBRARY double frexp(double x, int* e) { return __spirv_ocl_frexp(x, e); }
LIBRARY float modff(float x, float* i) { return __spirv_ocl_modf(x, i); }
LIBRARY double modf(double x, double* i) { return __spirv_ocl_modf(x, i); }
LIBRARY float remquof(float x, float y, int* q) { return __spirv_ocl_remquo(x, y, q); }
LIBRARY double remquo(double x, double y, int* q) { return __spirv_ocl_remquo(x, y, q); }
LIBRARY float ldexpf(float x, int e) { return __spirv_ocl_ldexp(x, e); }
LIBRARY double ldexp(double x, int e) { return __spirv_ocl_ldexp(x, e); }
LIBRARY float scalbnf(float x, int e) { return __spirv_ocl_ldexp(x, e); }
LIBRARY double scalbn(double x, int e) { return __spirv_ocl_ldexp(x, e); }
LIBRARY float scalblnf(float x, long e) { return __spirv_ocl_ldexp(x, static_cast<int>(e)); }
LIBRARY double scalbln(double x, long e) { return __spirv_ocl_ldexp(x, static_cast<int>(e)); }
LIBRARY int ilogbf(float x) { return __spirv_ocl_ilogb(x); }
LIBRARY int ilogb(double x) { return __spirv_ocl_ilogb(x); }

// Half away from zero, as round does; the result is what a conversion of it gives.
LIBRARY long lroundf(float x) { return static_cast<long>(__spirv_ocl_round(x)); }
LIBRARY long lround(double x) { return static_cast<long>(__spirv_ocl_round(x)); }
LIBRARY long lrintf(float x) { return static_cast<long>(__spirv_ocl_rint(x)); }
LIBRARY long lrint(double x) { return static_cast<long>(__spirv_ocl_rint(x)); }

LIBRARY int abs(int x) { return x < 0 ? -x : x; }
LIBRARY long labs(long x) { return x < 0 ? -x : x; }
LIBRARY long long llabs(long long x) { return x < 0 ? -x : x; }
#endif

#ifdef SCHEMA_PATCH_RUNTIME
LIBRARY void* memcpy(void* to, const void* from, u64 n) {
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (u64 i = 0; i < n; ++i) t[i] = f[i];
  return to;
}

LIBRARY void* memmove(void* to, const void* from, u64 n) {
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  if (t < f) {
    for (u64 i = 0; i < n; ++i) t[i] = f[i];
  } else {
    for (u64 i = n; i > 0; --i) t[i - 1] = f[i - 1];
  }
  return to;
}

LIBRARY void* memset(void* to, int value, u64 n) {
  auto* t = static_cast<char*>(to);
  for (u64 i = 0; i < n; ++i) t[i] = static_cast<char>(value);
  return to;
}

LIBRARY int memcmp(const void* one, const void* other, u64 n) {
  auto* a = static_cast<const unsigned char*>(one);
  auto* b = static_cast<const unsigned char*>(other);
  for (u64 i = 0; i < n; ++i)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

// The runtime brings this one itself: it tells the host which assertion failed. (intel/llvm, sycl/doc/design/Assert.md)
extern "C" __attribute__((sycl_device)) void __devicelib_assert_fail(const char* expression, const char* file, int line,
                                                                     const char* function, u64 global0, u64 global1,
                                                                     u64 global2, u64 local0, u64 local1, u64 local2);

LIBRARY void __assert_fail(const char* expression, const char* file, unsigned line, const char* function) {
  const auto global = __spirv_BuiltInGlobalInvocationId;
  const auto local = __spirv_BuiltInLocalInvocationId;
  __devicelib_assert_fail(expression, file, static_cast<int>(line), function, global.x, global.y, global.z, local.x,
                          local.y, local.z);
}

#include "bfloat16.hpp"
#endif
