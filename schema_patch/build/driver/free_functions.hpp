// Functions that are kernels, by their address: put before a source whose footer defines the table.
//
// The front end's own header specializes templates for each such function before the source, where the types of its
// template arguments are not declared yet, and its forward declarations of them do not compile. What SYCL's headers ask
// of a function, they ask when the program runs; so it can be answered from a table behind the source.
#pragma once

#define FreeFunctionInfoData FreeFunctionInfoDataOfNone
#include <sycl/detail/kernel_desc.hpp>
#undef FreeFunctionInfoData
#define is_kernel is_kernel_of_none
#define is_kernel_v is_kernel_of_none_v
#include <sycl/ext/oneapi/experimental/free_function_traits.hpp>
#undef is_kernel
#undef is_kernel_v

namespace schema_patch {

struct FreeFunction {
  const void* address;
  const char* name;
  unsigned parameters;
};

// Defined behind the source; ends the program where a function is no kernel.
static const FreeFunction& free_function(const void* address);

}  // namespace schema_patch

namespace sycl {
inline namespace _V1 {
namespace detail {
template <auto* Function>
struct FreeFunctionInfoData {
  static const ::schema_patch::FreeFunction& found() {
    return ::schema_patch::free_function(reinterpret_cast<const void*>(Function));
  }
  static unsigned getNumParams() { return found().parameters; }
  static const char* getFunctionName() { return found().name; }
};
}  // namespace detail
namespace ext::oneapi::experimental {
template <auto* Function>
struct is_kernel {
  static constexpr bool value = true;
};
template <auto* Function>
inline constexpr bool is_kernel_v = true;
}  // namespace ext::oneapi::experimental
}  // namespace _V1
}  // namespace sycl
