// Splitting query, gate, key and value heads, with their norms and rotary embedding.
#include <ATen/ceil_div.h>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace {

// What the two operators share; the value norm is absent in one of them.
struct Heads {
  const at::Tensor& qkv_state;
  const at::Tensor& q_out;
  const at::Tensor& gate_out;
  const at::Tensor& k_out;
  const at::Tensor& v_out;
  const at::Tensor& norm_wq;
  const at::Tensor& norm_wk;
  const at::Tensor* norm_wv;
  const at::Tensor& positions;
  Size q_heads;
  Size kv_heads;
  bool gated;
  int64_t rotary_dim;
  const at::Tensor& cos_sin_cache;
};

at::Tensor split(const char* op, const Heads& heads) {
  const Checks check(op, heads.qkv_state);
  const auto& [qkv_state, q_out, gate_out, k_out, v_out, norm_wq, norm_wk, norm_wv, positions, q_heads, kv_heads, gated,
               rotary_dim, cos_sin_cache] = heads;
  check.expect(q_heads > 0, "q_heads", "at least one head, found ", q_heads);
  check.expect(kv_heads > 0, "kv_heads", "at least one head, found ", kv_heads);
  check.expect(rotary_dim > 0 && rotary_dim <= kRopeHeadDim && rotary_dim % 2 == 0, "rotary_dim",
               "an even number up to ", kRopeHeadDim, ", found ", rotary_dim);
  // The original reads from the width of a row whether there is a gate, and from the flag how many heads to process.
  const Size columns = ((gated ? 2 : 1) * q_heads + 2 * kv_heads) * kRopeHeadDim;
  check("qkv_state", qkv_state)
      .dtype(at::kHalf)
      .expect(qkv_state.dim() == 2 && qkv_state.size(1) == columns, "shape [T, ", columns, "] ",
              gated ? "with" : "without", " a gate, found ", qkv_state.sizes());
  const int64_t T = qkv_state.size(0);
  check("q_out", q_out).dtype(at::kHalf).elements(q_heads * T * kRopeHeadDim);
  check("gate_out", gate_out).dtype(at::kHalf);
  if (gated) check("gate_out", gate_out).elements(q_heads * T * kRopeHeadDim);
  check("k_out", k_out).dtype(at::kHalf).elements(kv_heads * T * kRopeHeadDim);
  check("v_out", v_out).dtype(at::kHalf).elements(kv_heads * T * kRopeHeadDim);
  check("norm_wq", norm_wq).dtype(at::kHalf).elements(kRopeHeadDim);
  check("norm_wk", norm_wk).dtype(at::kHalf).elements(kRopeHeadDim);
  if (norm_wv) check("norm_wv", *norm_wv).dtype(at::kHalf).elements(kRopeHeadDim);
  check("cos_sin_cache", cos_sin_cache)
      .dtype(at::kHalf)
      .expect(cos_sin_cache.dim() == 2 && cos_sin_cache.size(0) > 0 && cos_sin_cache.size(1) == rotary_dim,
              "shape [positions, ", rotary_dim, "], found ", cos_sin_cache.sizes());
  check("positions", positions).dtype(at::kInt).elements(T).within("positions", 0, cos_sin_cache.size(0));
  check.apart({{"q_out", q_out}, {"gate_out", gate_out}, {"k_out", k_out}, {"v_out", v_out}},
              {{"qkv_state", qkv_state},
               {"norm_wq", norm_wq},
               {"norm_wk", norm_wk},
               {"norm_wv", norm_wv ? *norm_wv : norm_wk},
               {"positions", positions},
               {"cos_sin_cache", cos_sin_cache}});

  const int64_t groups = at::ceil_div<int64_t>(columns * T / kRopeHeadDim, kSubGroups);
  nd_launch(queue(qkv_state), {groups, kGroupSize}, kernel("rope/qkv_split_norm_rope<half>"),
            qkv_state.const_data_ptr(), q_out.mutable_data_ptr(), gate_out.mutable_data_ptr(), k_out.mutable_data_ptr(),
            v_out.mutable_data_ptr(), norm_wq.const_data_ptr(), norm_wk.const_data_ptr(),
            norm_wv ? norm_wv->const_data_ptr() : nullptr, positions.const_data_ptr(), cos_sin_cache.const_data_ptr(),
            T, q_heads, kv_heads, static_cast<int64_t>(gated), rotary_dim, cos_sin_cache.size(0));
  return q_out;
}

}  // namespace

at::Tensor qkv_split_norm_rope(at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
                               at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor positions,
                               int64_t q_heads, int64_t kv_heads, bool attn_output_gate, int64_t rotary_dim,
                               at::Tensor cos_sin_cache) {
  return split("esimd_qkv_split_norm_rope",
               {qkv_state, q_out, gate_out, k_out, v_out, norm_wq, norm_wk, /*norm_wv=*/nullptr, positions, q_heads,
                kv_heads, attn_output_gate, rotary_dim, cos_sin_cache});
}

at::Tensor qkv_split_norm_rope_v(at::Tensor qkv_state, at::Tensor q_out, at::Tensor gate_out, at::Tensor k_out,
                                 at::Tensor v_out, at::Tensor norm_wq, at::Tensor norm_wk, at::Tensor norm_wv,
                                 at::Tensor positions, int64_t q_heads, int64_t kv_heads, bool attn_output_gate,
                                 int64_t rotary_dim, at::Tensor cos_sin_cache) {
  return split("esimd_qkv_split_norm_rope_v",
               {qkv_state, q_out, gate_out, k_out, v_out, norm_wq, norm_wk, &norm_wv, positions, q_heads, kv_heads,
                attn_output_gate, rotary_dim, cos_sin_cache});
}

}  // namespace esimd_ops
