// Operands read and written in place count, and the return names the first of them.
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
TORCH_LIBRARY_EXPAND(custom_esimd_kernels_vllm, ops) {
  ops.def("esimd_fused_add_rms_norm(Tensor(a!) hidden_states, Tensor(b!) residual, Tensor weight, float eps) -> ()",
          drop_return<&esimd_fused_add_rms_norm>);
  ops.def("esimd_norm_add_norm(Tensor h2_raw, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out, float eps1, float eps2) -> ()");
  ops.def("esimd_resadd_norm_gemv2_fp8_pert(Tensor hidden_states, Tensor residual, Tensor norm_weight, Tensor w0, Tensor s0, "
          "Tensor(a!) o0, Tensor w1, Tensor s1, Tensor(b!) o1, float eps) -> ()", TORCH_FN(drop_return<ns::resadd<float>>));
}
