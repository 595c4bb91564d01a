// torch's own, with the device's names as torch means them: only who includes it knows at::acc_type.
#pragma once
#include "../torch/xpu_itself.h"
#include_next <ATen/AccumulateType.h>
#include "../torch/cpu_for_xpu.h"
