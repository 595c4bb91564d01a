// One-token matrix-vector operators. More than one token is refused: the original library ignores the rest.
#include <ATen/ceil_div.h>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace {

Range row_blocks(int64_t N) { return {at::ceil_div<int64_t>(N, kSubGroups * kGemvRows), kGroupSize}; }

// Packed weight [N, K/2] uint8, scale [N, K/128] fp16, output [1, N] fp16.
void check_int4_matrix(const Checks& check, const char* weight_name, const at::Tensor& weight, const char* scale_name,
                       const at::Tensor& scale, const char* output_name, const at::Tensor& output, int64_t K) {
  const auto argument = check(weight_name, weight);
  argument.dtype(at::kByte).expect(weight.dim() == 2, "shape [N, K/2], found ", weight.sizes());
  const int64_t N = weight.size(0);
  argument.shape({N, K / 2}).aligned(sizeof(uint32_t));
  check(scale_name, scale).dtype(at::kHalf).shape({N, K / kInt4Group});
  check(output_name, output)
      .dtype(at::kHalf)
      .one_row(N)
      .apart_from({{weight_name, weight}, {scale_name, scale}});
}

int64_t check_int4_input(const Checks& check, const at::Tensor& input) {
  const auto argument = check("input", input);
  argument.dtype(at::kHalf).rows();
  const int64_t K = input.size(-1);
  argument.one_row(K).expect(K % kInt4Group == 0, "a multiple of ", kInt4Group, " elements, found ", K);
  return K;
}

}  // namespace

at::Tensor gemv_int4(at::Tensor input, at::Tensor weight, at::Tensor weight_scale, at::Tensor output) {
  const Checks check("esimd_gemv_int4", input);
  const int64_t K = check_int4_input(check, input);
  check_int4_matrix(check, "weight", weight, "weight_scale", weight_scale, "output", output, K);
  check("output", output).apart_from({{"input", input}});

  const int64_t N = weight.size(0);
  nd_launch(queue(input), row_blocks(N), kernel("gemv/gemv_int4"), input.const_data_ptr(), weight.const_data_ptr(),
            weight_scale.const_data_ptr(), output.mutable_data_ptr(), N, weight.const_data_ptr(),
            weight_scale.const_data_ptr(), output.mutable_data_ptr(), /*N1=*/int64_t{0}, K);
  return output;
}

at::Tensor gemv_int4_fused2(at::Tensor input, at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                            at::Tensor o1) {
  const Checks check("esimd_gemv_int4_fused2", input);
  const int64_t K = check_int4_input(check, input);
  check_int4_matrix(check, "w0", w0, "s0", s0, "o0", o0, K);
  check_int4_matrix(check, "w1", w1, "s1", s1, "o1", o1, K);
  check("o0", o0).apart_from({{"input", input}, {"w1", w1}, {"s1", s1}, {"o1", o1}});
  check("o1", o1).apart_from({{"input", input}, {"w0", w0}, {"s0", s0}});

  nd_launch(queue(input), row_blocks(w0.size(0) + w1.size(0)), kernel("gemv/gemv_int4"), input.const_data_ptr(),
            w0.const_data_ptr(), s0.const_data_ptr(), o0.mutable_data_ptr(), w0.size(0), w1.const_data_ptr(),
            s1.const_data_ptr(), o1.mutable_data_ptr(), w1.size(0), K);
  return o0;
}

void norm_gemv_norm_fp16(at::Tensor residual, at::Tensor scale_with_root, at::Tensor proj_w, at::Tensor pre_ff_w,
                         at::Tensor router_logits, at::Tensor moe_input, double eps) {
  const Checks check("esimd_norm_gemv_norm_fp16", residual);
  check("residual", residual).dtype(at::kHalf).rows();
  const int64_t K = residual.size(-1);
  check("residual", residual).one_row(K);
  check("scale_with_root", scale_with_root).dtype(at::kHalf).one_row(K);
  check("proj_w", proj_w)
      .dtype(at::kHalf)
      .expect(proj_w.dim() == 2 && proj_w.size(0) > 0 && proj_w.size(1) == K, "shape [N, ", K, "] with N > 0, found ",
              proj_w.sizes());
  const int64_t N = proj_w.size(0);
  check("pre_ff_w", pre_ff_w).dtype(at::kHalf).one_row(K);
  check("router_logits", router_logits).dtype(at::kHalf).one_row(N);
  check("moe_input", moe_input).dtype(at::kHalf).one_row(K);
  check("router_logits", router_logits)
      .apart_from({{"residual", residual},
                   {"scale_with_root", scale_with_root},
                   {"proj_w", proj_w},
                   {"pre_ff_w", pre_ff_w},
                   {"moe_input", moe_input}});
  check("moe_input", moe_input)
      .apart_from({{"residual", residual},
                   {"scale_with_root", scale_with_root},
                   {"proj_w", proj_w},
                   {"pre_ff_w", pre_ff_w}});

  nd_launch(queue(residual), row_blocks(N), kernel("gemv/norm_gemv_norm"), residual.const_data_ptr(),
            scale_with_root.const_data_ptr(), proj_w.const_data_ptr(), pre_ff_w.const_data_ptr(),
            router_logits.mutable_data_ptr(), moe_input.mutable_data_ptr(), static_cast<float>(eps), N, K);
}

}  // namespace esimd_ops
