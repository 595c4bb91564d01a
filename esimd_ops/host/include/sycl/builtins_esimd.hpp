// Stands in for <sycl/builtins_esimd.hpp>.
#pragma once
#include "builtins.hpp"
