// Macros without semicolons and unbalanced conditionals throw the C++ parser off before and inside the block.
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
DECLARE_THINGS(a, b) {{{ BEGIN_NAMESPACE
#if defined(A)
void f() {
#else
void g() {
#endif
TORCH_LIBRARY(esimd_ops, m) {
  REGISTER_FIRST
#if defined(A) && \
    defined(B)
  m.def("esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> ()");
#endif
  m.impl("esimd_rms_norm", drop_return<&norm>);
}
