// A norm and the GEMV that reads it: the norm first, by a kernel of its own that leaves fp32 activations and updates
// what is updated in place; so no work-group of the GEMV can read the residual too late, as in the original library.
#include "device/tile.h"
#include "gemv/gemv.h"
#include "ops.h"

namespace esimd_ops {
namespace {

using gemv::Matrices;
using gemv::Matrix;

void check_residual_and_norm(const Checks& check, const at::Tensor& residual, const at::Tensor& norm_weight,
                             int64_t K) {
  check("residual", residual).dtype(at::kHalf).one_row(K);
  check("norm_weight", norm_weight).dtype(at::kHalf).one_row(K);
}

at::Tensor activations(const at::Tensor& like, int64_t K) { return temporary(like, {K}, at::kFloat); }

// What the kernel stores beside the activations; null for what an operator does not write.
struct Stored {
  void* residual = nullptr;
  void* normed_out = nullptr;
};

at::Tensor resadd_norm(const at::Tensor& hidden_states, const at::Tensor& residual, const at::Tensor& norm_weight,
                       Stored stored, double eps, double scalar, int64_t K) {
  const at::Tensor y = activations(hidden_states, K);
  launch_rows(queue(hidden_states), 1, "gemv/resadd_norm", K, hidden_states.const_data_ptr(), residual.const_data_ptr(),
              norm_weight.const_data_ptr(), stored.residual, stored.normed_out, y.mutable_data_ptr(),
              static_cast<float>(eps), static_cast<float>(scalar));
  return y;
}

// Flush is the decoder of every operator with a residual.
const char* fp8_kernel(bool e5m2) {
  return e5m2 ? "float, Fp8Row<E5M2Flush>, TensorScale" : "float, Fp8Row<E4M3Flush>, TensorScale";
}

const char* int4_kernel(const Checks&, const Matrix&) { return "float, Int4Row, Unscaled"; }

// x, z [HV, V] -> K = HV * V.
int64_t check_heads(const Checks& check, const at::Tensor& x, const at::Tensor& z, const at::Tensor& norm_weight,
                    Size HV, int64_t V) {
  check.expect(HV > 0, "HV", "at least one head, found ", HV);
  check.expect(V == kHeadDim, "V", kHeadDim, ", found ", V);
  check("x", x).dtype(at::kHalf).elements(HV * V);
  check("z", z).dtype(at::kHalf).elements(HV * V);
  check("norm_weight", norm_weight).dtype(at::kHalf).elements(V);
  return HV * V;
}

at::Tensor gated_norm(const at::Tensor& x, const at::Tensor& z, const at::Tensor& norm_weight, double eps, int64_t HV,
                      int64_t V) {
  const at::Tensor y = activations(x, HV * V);
  launch_rows(queue(x), HV, "gemv/gated_norm", V, x.const_data_ptr(), z.const_data_ptr(), norm_weight.const_data_ptr(),
              y.mutable_data_ptr(), static_cast<float>(eps));
  return y;
}

// `check_matrix` judges the weight, `kinds` names the kernel's.
template <typename Check, typename Kinds>
at::Tensor norm_gemv(const char* op, Check check_matrix, Kinds kinds, const at::Tensor& x, const at::Tensor& z,
                     const at::Tensor& norm_weight, const at::Tensor& weight, const at::Tensor& scale,
                     const at::Tensor& output, int64_t HV, int64_t V, double eps) {
  const Checks check(op, x);
  const int64_t K = check_heads(check, x, z, norm_weight, HV, V);
  const Matrix matrix{{"gemv_weight", weight}, {"gemv_scale", scale}, {"output", output}};
  check_matrix(check, matrix, K);
  check.apart({matrix.output}, {{"x", x}, {"z", z}, {"norm_weight", norm_weight}, matrix.weight, matrix.scale});
  gemv::run(kinds(check, matrix), gated_norm(x, z, norm_weight, eps, HV, V), {matrix}, K);
  return output;
}

template <typename Check, typename Kinds>
at::Tensor resadd_norm_gemv(const char* op, Check check_matrix, Kinds kinds, const at::Tensor& hidden_states,
                            const at::Tensor& residual, const at::Tensor& norm_weight, const at::Tensor& weight,
                            const at::Tensor& scale, const at::Tensor& output, const at::Tensor& normed_out,
                            double eps) {
  const Checks check(op, hidden_states);
  const int64_t K = gemv::check_token(check, "hidden_states", hidden_states);
  const Matrix matrix{{"gemv_weight", weight}, {"gemv_scale", scale}, {"output", output}};
  check_residual_and_norm(check, residual, norm_weight, K);
  check_matrix(check, matrix, K);
  check("normed_out", normed_out).dtype(at::kHalf).one_row(K);
  check.apart({{"residual", residual}, matrix.output, {"normed_out", normed_out}},
              {{"hidden_states", hidden_states}, {"norm_weight", norm_weight}, matrix.weight, matrix.scale});

  const at::Tensor y = resadd_norm(hidden_states, residual, norm_weight,
                                   {residual.mutable_data_ptr(), normed_out.mutable_data_ptr()}, eps, 1.0, K);
  gemv::run(kinds(check, matrix), y, {matrix}, K);
  return output;
}

}  // namespace

at::Tensor resadd_norm_gemv_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                     at::Tensor gemv_weight, at::Tensor gemv_scale, at::Tensor output,
                                     at::Tensor normed_out, double eps) {
  const auto kinds = [](const Checks& check, const Matrix& m) { return fp8_kernel(gemv::is_e5m2(check, {m})); };
  return resadd_norm_gemv("esimd_resadd_norm_gemv_fp8_pert", gemv::check_fp8_tensor_scaled, kinds, hidden_states,
                          residual, norm_weight, gemv_weight, gemv_scale, output, normed_out, eps);
}

at::Tensor resadd_norm_gemv_int4_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor gemv_weight, at::Tensor gemv_scale, at::Tensor output,
                                      at::Tensor normed_out, double eps) {
  const auto check_words = [](const Checks& check, const Matrix& matrix, int64_t K) {
    check.expect(K % kInt4Group == 0, "hidden_states", "a multiple of ", kInt4Group, " elements, found ", K);
    gemv::check_int4_words(check, matrix, K);
  };
  return resadd_norm_gemv("esimd_resadd_norm_gemv_int4_pert", check_words, int4_kernel, hidden_states, residual,
                          norm_weight, gemv_weight, gemv_scale, output, normed_out, eps);
}

// The residual is only read: the caller adds to it.
at::Tensor resadd_norm_gemv2_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor w0, at::Tensor s0, at::Tensor o0, at::Tensor w1, at::Tensor s1,
                                      at::Tensor o1, double eps) {
  const Checks check("esimd_resadd_norm_gemv2_fp8_pert", hidden_states);
  const int64_t K = gemv::check_token(check, "hidden_states", hidden_states);
  check_residual_and_norm(check, residual, norm_weight, K);
  const Matrix first{{"w0", w0}, {"s0", s0}, {"o0", o0}};
  const Matrix second{{"w1", w1}, {"s1", s1}, {"o1", o1}};
  gemv::check_fp8_tensor_scaled(check, first, K);
  gemv::check_fp8_tensor_scaled(check, second, K);
  const bool e5m2 = gemv::is_e5m2(check, {first, second});
  const std::initializer_list<Named> read{{"hidden_states", hidden_states}, {"residual", residual},
                                          {"norm_weight", norm_weight}, first.weight, first.scale, second.weight,
                                          second.scale};
  check.apart({first.output, second.output}, read);

  const at::Tensor y = resadd_norm(hidden_states, residual, norm_weight, {}, eps, 1.0, K);
  gemv::run(fp8_kernel(e5m2), y, {first, second}, K);
  return o0;
}

// The norm reads the sum before it is rounded into residual.
void scaled_resadd_norm_gemv_fp8_pert(at::Tensor hidden_states, at::Tensor residual, at::Tensor norm_weight,
                                      at::Tensor qkv_weight, at::Tensor qkv_scale, at::Tensor qkv_out, double eps,
                                      double scalar) {
  const Checks check("esimd_scaled_resadd_norm_gemv_fp8_pert", hidden_states);
  const int64_t K = gemv::check_token(check, "hidden_states", hidden_states);
  check_residual_and_norm(check, residual, norm_weight, K);
  const Matrix matrix{{"qkv_weight", qkv_weight}, {"qkv_scale", qkv_scale}, {"qkv_out", qkv_out}};
  gemv::check_fp8_tensor_scaled(check, matrix, K);
  check.apart({{"residual", residual}, matrix.output},
              {{"hidden_states", hidden_states}, {"norm_weight", norm_weight}, matrix.weight, matrix.scale});

  const at::Tensor y = resadd_norm(hidden_states, residual, norm_weight, {residual.mutable_data_ptr()}, eps, scalar, K);
  gemv::run(fp8_kernel(gemv::is_e5m2(check, {matrix})), y, {matrix}, K);
}

at::Tensor norm_gemv_fp8_pert(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                              at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps) {
  const auto kinds = [](const Checks& check, const Matrix& matrix) {
    return gemv::is_e5m2(check, {matrix}) ? "float, Fp8Row<E5M2Flush>, TensorScale"
                                          : "float, Fp8Row<E4M3>, TensorScale";
  };
  return norm_gemv("esimd_norm_gemv_fp8_pert", gemv::check_fp8_tensor_scaled, kinds, x, z, norm_weight, gemv_weight,
                   gemv_scale, output, HV, V, eps);
}

at::Tensor norm_gemv_int4_pert(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                               at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps) {
  return norm_gemv("esimd_norm_gemv_int4_pert", gemv::check_int4_words, int4_kernel, x, z, norm_weight, gemv_weight,
                   gemv_scale, output, HV, V, eps);
}

at::Tensor norm_gemv_fp8_blockscale(at::Tensor x, at::Tensor z, at::Tensor norm_weight, at::Tensor gemv_weight,
                                    at::Tensor gemv_scale, at::Tensor output, int64_t HV, int64_t V, double eps) {
  const auto kinds = [](const Checks&, const Matrix&) { return "float, Fp8BlockRow, Unscaled"; };
  return norm_gemv("esimd_norm_gemv_fp8_blockscale", gemv::check_fp8_block_scaled, kinds, x, z, norm_weight,
                   gemv_weight, gemv_scale, output, HV, V, eps);
}

void norm_gemv_norm_fp16(at::Tensor residual, at::Tensor scale_with_root, at::Tensor proj_w, at::Tensor pre_ff_w,
                         at::Tensor router_logits, at::Tensor moe_input, double eps) {
  const Checks check("esimd_norm_gemv_norm_fp16", residual);
  const int64_t K = gemv::check_token(check, "residual", residual);
  check("scale_with_root", scale_with_root).dtype(at::kHalf).one_row(K);
  const Matrix matrix{{"proj_w", proj_w}, {"proj_w", proj_w}, {"router_logits", router_logits}};
  gemv::check_half(check, matrix, K);
  check("proj_w", proj_w).expect(matrix.N() > 0, "shape [N, ", K, "] with N > 0, found ", proj_w.sizes());
  check("router_logits", router_logits).one_row(matrix.N());
  check("pre_ff_w", pre_ff_w).dtype(at::kHalf).one_row(K);
  check("moe_input", moe_input).dtype(at::kHalf).one_row(K);
  check.apart(
      {matrix.output, {"moe_input", moe_input}},
      {{"residual", residual}, {"scale_with_root", scale_with_root}, {"proj_w", proj_w}, {"pre_ff_w", pre_ff_w}});

  const at::Tensor y = activations(residual, K);
  launch_rows(queue(residual), 1, "gemv/two_norms", K, residual.const_data_ptr(), scale_with_root.const_data_ptr(),
              pre_ff_w.const_data_ptr(), moe_input.mutable_data_ptr(), y.mutable_data_ptr(), static_cast<float>(eps));
  gemv::run("float, HalfRow, Unscaled", y, {matrix}, K);
}

}  // namespace esimd_ops
