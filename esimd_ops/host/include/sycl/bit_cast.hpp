// Stands in for <sycl/bit_cast.hpp>.
#pragma once
#include "builtins.hpp"
