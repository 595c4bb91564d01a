// Quantisation to int4.
#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {

void q4_0_quantize(at::Tensor input, at::Tensor out_qweight, at::Tensor out_scale) {
  const Checks check("q4_0_quantize", input);
  const at::ScalarType type = input.scalar_type();
  check("input", input)
      .expect(type == at::kHalf || type == at::kBFloat16, "dtype Half or BFloat16, found ", type)
      .expect(input.dim() == 2 && input.size(1) % kInt4Group == 0, "shape [M, K] with K a multiple of ", kInt4Group,
              ", found ", input.sizes());
  const int64_t M = input.size(0);
  const int64_t K = input.size(1);
  check("out_qweight", out_qweight).dtype(at::kInt).shape({M, K / 8});
  check("out_scale", out_scale).dtype(at::kHalf).shape({M, K / kInt4Group});
  check.apart({{"out_qweight", out_qweight}, {"out_scale", out_scale}}, {{"input", input}});

  nd_launch(queue(input), {M * (K / kInt4Group), kSubGroupSize},
            kernel(type == at::kHalf ? "quant/q4_0_quantize<Float16>" : "quant/q4_0_quantize<BFloat16>"),
            input.const_data_ptr(), out_qweight.mutable_data_ptr(), out_scale.mutable_data_ptr());
}

}  // namespace esimd_ops
