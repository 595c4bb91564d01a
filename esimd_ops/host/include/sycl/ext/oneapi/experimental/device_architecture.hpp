// Stands in for <sycl/ext/oneapi/experimental/device_architecture.hpp>.
#pragma once
#include "../../../device.hpp"
