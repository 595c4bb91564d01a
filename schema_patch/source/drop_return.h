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
