// Stands in for <sycl/ext/intel/esimd.hpp>. What is not here does not compile.
#pragma once
#include "esimd/atomic.hpp"
#include "esimd/barrier.hpp"
#include "esimd/math.hpp"
#include "esimd/memory.hpp"
#include "esimd/operators.hpp"
#include "esimd/reduce.hpp"
#include "esimd/simd.hpp"
#include "esimd/slm.hpp"
#include "esimd/xmx/common.hpp"
#include "esimd/xmx/dpas.hpp"
#include "experimental/esimd/memory.hpp"
