// Implementations that are no plain names: a lambda, a cast out of an overload set, a template instance.
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
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> ()");
  m.impl("esimd_gemv_fp16", torch::kCPU, drop_return_of([](at::Tensor x, at::Tensor w, at::Tensor o) { return gemv(x, w, o); }));
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output) -> ()");
  m.impl("esimd_gemv_int4", drop_return<static_cast<at::Tensor (*)(at::Tensor, at::Tensor, at::Tensor, at::Tensor)>(&gemv)>);
  m.def("esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()");
  m.impl("esimd_rms_norm", drop_return<&norm<float, 16>>);
}
