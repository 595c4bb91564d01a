// Memory of a work-group that a kernel asks for where it stands: one piece for each place that asks.
#pragma once
#include <source_location>

#include "../../../esimd_host/runtime.hpp"
#include "../../multi_ptr.hpp"

namespace sycl::ext::oneapi {

template <class T, class Group>
multi_ptr<T, access::address_space::local_space> group_local_memory_for_overwrite(
    Group, std::source_location here = std::source_location::current()) {
  constexpr unsigned kColumnBits = 56;
  const size_t site = esimd_host::site(here.file_name(), here.line()) ^ size_t(here.column()) << kColumnBits;
  return static_cast<T*>(esimd_host::group_memory(site, sizeof(T)));
}

}  // namespace sycl::ext::oneapi
