// Names that SYCL releases since these tests were written have dropped for others, and standard headers that SYCL's own
// include no longer. Put before each test by driver_e2e.py: the tests themselves stay as they are.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sycl/sycl.hpp>
#include <thread>
#include <vector>

namespace sycl {
using runtime_error = exception;
using kernel_error = exception;
using accessor_error = exception;
using nd_range_error = exception;
using event_error = exception;
using invalid_parameter_error = exception;
using device_error = exception;
using compile_program_error = exception;
using link_program_error = exception;
using invalid_object_error = exception;
using memory_allocation_error = exception;
using platform_error = exception;
using profiling_error = exception;
using feature_not_supported = exception;

namespace ext::oneapi {
using sycl::atomic_ref;
using sycl::memory_order;
using sycl::memory_scope;

template <typename Group>
bool any_of(Group group, bool value) {
  return any_of_group(group, value);
}
template <typename Group>
bool all_of(Group group, bool value) {
  return all_of_group(group, value);
}
template <typename Group>
bool none_of(Group group, bool value) {
  return none_of_group(group, value);
}
template <typename Group, typename... More>
auto broadcast(Group group, More... more) {
  return group_broadcast(group, more...);
}
template <typename Group, typename... More>
auto reduce(Group group, More... more) {
  return reduce_over_group(group, more...);
}
template <typename Group, typename... More>
auto inclusive_scan(Group group, More... more) {
  return inclusive_scan_over_group(group, more...);
}
template <typename Group, typename... More>
auto exclusive_scan(Group group, More... more) {
  return exclusive_scan_over_group(group, more...);
}
template <typename Group>
bool leader(Group group) {
  return group.leader();
}
}  // namespace ext::oneapi
}  // namespace sycl
