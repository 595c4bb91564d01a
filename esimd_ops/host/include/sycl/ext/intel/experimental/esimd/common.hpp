// Names that the experimental functions share with the others.
#pragma once
#include "../../esimd/atomic.hpp"
#include "../../esimd/barrier.hpp"
#include "tfloat32.hpp"

namespace sycl::ext::intel::experimental::esimd {

using cache_hint = sycl::ext::intel::esimd::cache_hint;
using sycl::ext::intel::esimd::simd;
using sycl::ext::intel::esimd::simd_mask;
enum class lsc_data_size { default_size, u8, u16, u32, u64, u8u32, u16u32, u16u32h };

namespace detail {
// What memory holds of an element of type T.
template <class T, lsc_data_size Size>
constexpr auto stored() {
  if constexpr (Size == lsc_data_size::default_size) return T();
  else if constexpr (Size == lsc_data_size::u8 || Size == lsc_data_size::u8u32) return uint8_t();
  else if constexpr (Size == lsc_data_size::u16 || Size == lsc_data_size::u16u32) return uint16_t();
  else if constexpr (Size == lsc_data_size::u32) return uint32_t();
  else if constexpr (Size == lsc_data_size::u64) return uint64_t();
  else static_assert(sycl::ext::intel::esimd::detail::never<T>, "esimd host: this lsc_data_size is not supported");
}
template <class T, lsc_data_size Size>
using stored_t = decltype(stored<T, Size>());
}  // namespace detail

}  // namespace sycl::ext::intel::experimental::esimd
