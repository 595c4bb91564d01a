// RMSNorm operators. Where the original library handles the first row only, or whole blocks of 64 or 512 columns, this
// library handles every row of any width: rows are independent. Only the accumulating form is bound to one token.
#include "checks.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace {

at::Tensor add_rms_norm(const char* op, const at::Tensor& hidden_states, const at::Tensor& residual,
                        const at::Tensor& weight, double eps, double scalar) {
  const Checks check(op, hidden_states);
  check("hidden_states", hidden_states).dtype(at::kHalf).rows();
  const int64_t K = hidden_states.size(-1);
  check("residual", residual).dtype(at::kHalf).shape(hidden_states.sizes());
  check("weight", weight).dtype(at::kHalf).one_row(K);
  check("hidden_states", hidden_states).apart_from({{"residual", residual}, {"weight", weight}});
  check("residual", residual).apart_from({{"weight", weight}});

  launch_rows(queue(hidden_states), hidden_states.numel() / K, "norm/add_rms_norm", K, hidden_states.mutable_data_ptr(),
              residual.mutable_data_ptr(), weight.const_data_ptr(), static_cast<float>(eps), static_cast<float>(scalar));
  return hidden_states;
}

// h2 is the sum of `terms` neighbouring rows of h2_terms for each row of h1; its shape was checked by the caller.
void norm_add_norm(const Checks& check, const char* h2_name, const at::Tensor& h2_terms, int64_t terms,
                   const at::Tensor& h1, const at::Tensor& w1, const at::Tensor& w2, const at::Tensor& out, double eps1,
                   double eps2) {
  const int64_t K = h1.size(-1);
  check("w1", w1).dtype(at::kHalf).one_row(K);
  check("w2", w2).dtype(at::kHalf).one_row(K);
  check("out", out).dtype(at::kHalf).shape(h1.sizes()).apart_from({{"h1", h1}, {"w1", w1}, {"w2", w2}});
  check("h1", h1).apart_from({{h2_name, h2_terms}, {"w1", w1}, {"w2", w2}});

  launch_rows(queue(h1), h1.numel() / K, "norm/norm_add_norm", K, h2_terms.const_data_ptr(), h1.mutable_data_ptr(),
              w1.const_data_ptr(), w2.const_data_ptr(), out.mutable_data_ptr(), terms, static_cast<float>(eps1),
              static_cast<float>(eps2));
}

}  // namespace

at::Tensor rms_norm(at::Tensor input, at::Tensor output, at::Tensor weight, double eps) {
  const Checks check("esimd_rms_norm", input);
  check("input", input).dtype(at::kHalf).rows();
  const int64_t K = input.size(-1);
  check("weight", weight).dtype(at::kHalf).one_row(K);
  check("output", output)
      .dtype(at::kHalf)
      .shape(input.sizes())
      .same_or_apart_from("input", input)
      .apart_from({{"weight", weight}});

  launch_rows(queue(input), input.numel() / K, "norm/rms_norm", K, input.const_data_ptr(), output.mutable_data_ptr(),
              weight.const_data_ptr(), static_cast<float>(eps));
  return output;
}

at::Tensor fused_add_rms_norm(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps) {
  return add_rms_norm("esimd_fused_add_rms_norm", hidden_states, residual, weight, eps, 1.0);
}

at::Tensor fused_scaled_add_rms_norm(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps,
                                     double scalar) {
  return add_rms_norm("esimd_fused_scaled_add_rms_norm", hidden_states, residual, weight, eps, scalar);
}

at::Tensor fused_add_rms_norm_batched(at::Tensor hidden_states, at::Tensor residual, at::Tensor weight, double eps) {
  return add_rms_norm("esimd_fused_add_rms_norm_batched", hidden_states, residual, weight, eps, 1.0);
}

at::Tensor rms_norm_gated(at::Tensor x, at::Tensor z, at::Tensor weight, at::Tensor output, double eps) {
  const Checks check("esimd_rms_norm_gated", x);
  check("x", x).dtype(at::kHalf).rows();
  const int64_t K = x.size(-1);
  check("z", z).dtype(at::kHalf).shape(x.sizes());
  check("weight", weight).dtype(at::kHalf).one_row(K);
  check("output", output)
      .dtype(at::kHalf)
      .shape(x.sizes())
      .same_or_apart_from("x", x)
      .same_or_apart_from("z", z)
      .apart_from({{"weight", weight}});

  launch_rows(queue(x), x.numel() / K, "norm/rms_norm_gated", K, x.const_data_ptr(), z.const_data_ptr(),
              weight.const_data_ptr(), output.mutable_data_ptr(), static_cast<float>(eps));
  return output;
}

void norm_add_norm(at::Tensor h2_raw, at::Tensor h1, at::Tensor w1, at::Tensor w2, at::Tensor out, double eps1,
                   double eps2) {
  const Checks check("esimd_norm_add_norm", h2_raw);
  check("h2_raw", h2_raw).dtype(at::kHalf).rows();
  check("h1", h1).dtype(at::kHalf).shape(h2_raw.sizes());
  check("out", out).same_or_apart_from("h2_raw", h2_raw);
  norm_add_norm(check, "h2_raw", h2_raw, /*terms=*/1, h1, w1, w2, out, eps1, eps2);
}

void accum_norm_add_norm(at::Tensor routed_output, at::Tensor h1, at::Tensor w1, at::Tensor w2, at::Tensor out,
                         int64_t top_k, double eps1, double eps2) {
  const Checks check("esimd_accum_norm_add_norm", routed_output);
  check("routed_output", routed_output).dtype(at::kHalf).rows();
  const int64_t K = routed_output.size(-1);
  const int64_t available = routed_output.numel() / K;
  TORCH_CHECK(top_k >= 1 && top_k <= available, "esimd_accum_norm_add_norm: argument 'top_k': expected 1 to ",
              available, ", the rows of routed_output, found ", top_k);
  check("h1", h1).dtype(at::kHalf).one_row(K);
  check("out", out).apart_from({{"routed_output", routed_output}});
  norm_add_norm(check, "routed_output", routed_output, top_k, h1, w1, w2, out, eps1, eps2);
}

}  // namespace esimd_ops
