// Raw literals with delimiters, escapes of every kind, a line splice, a u8 prefix.
#include <torch/library.h>

#ifndef SCHEMA_PATCH_DROP_RETURN
#define SCHEMA_PATCH_DROP_RETURN
// drop_return<&fn>: fn with the same arguments and no result, for an operator whose schema says `-> ()`.
// A plain function pointer, so it stands wherever a registration takes one. drop_return_of(lambda) does it for a lambda.
#include <utility>

template <auto fn, typename Pointer = decltype(fn)>
struct DropReturn;

template <auto fn, typename Return, typename... Arguments>
struct DropReturn<fn, Return (*)(Arguments...)> {
  static void call(Arguments... arguments) { static_cast<void>(fn(std::forward<Arguments>(arguments)...)); }
};

template <auto fn, typename Return, typename... Arguments>
struct DropReturn<fn, Return (*)(Arguments...) noexcept> : DropReturn<fn, Return (*)(Arguments...)> {};

template <auto fn>
inline constexpr auto drop_return = &DropReturn<fn>::call;

template <typename Lambda, typename Return, typename... Arguments>
auto drop_return_from(Lambda lambda, Return (Lambda::*)(Arguments...) const) {
  return [lambda](Arguments... arguments) { static_cast<void>(lambda(std::forward<Arguments>(arguments)...)); };
}

template <typename Lambda>
auto drop_return_of(Lambda lambda) {
  return drop_return_from(lambda, &Lambda::operator());
}
#endif
TORCH_LIBRARY(custom_esimd_kernels_sglang, m) {
  m.def(R"esimd(esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ())esimd", drop_return<&f>);
  m.def(u8"esimd_moe_silu_mul(Tensor input, Tensor(a!) \x6Futput, int N_gate_up, \
int N_half, int total_\162ows) -> ()", drop_return<&g>);
  m.def(R"(esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!))" R"( output) -> ())", drop_return<&h>);
}
