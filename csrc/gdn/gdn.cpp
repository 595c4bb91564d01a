// Gated delta net operators: one token of each sequence, or several that may yet be rejected.
#include <ATen/ceil_div.h>

#include <string>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace {

constexpr int64_t kHistory = 3;  // tokens before the new one

// What the operators share, as they name it.
struct Layer {
  const at::Tensor& qkvz;
  const at::Tensor& conv_state;
  const at::Tensor& conv_weight;
  const at::Tensor& conv_bias;
  Named conv_slots;
  const at::Tensor& A_log;
  const at::Tensor& dt_bias;
  const at::Tensor& ba;
  const at::Tensor& ssm_state;
  Named ssm_slots;
  const at::Tensor& output;
  const at::Tensor& z_out;
  Size H;
  Size HV;
  Size K;
  Size V;
  double scale;
  bool interleaved;
};

// The tokens: `steps` of each sequence; rows and accepted only where there are several.
struct Tokens {
  Size sequences;
  Size steps = 1;
  const at::Tensor* rows = nullptr;
  const at::Tensor* accepted = nullptr;

  const void* row_numbers() const { return rows ? rows->const_data_ptr() : nullptr; }
  const void* accepted_counts() const { return accepted ? accepted->const_data_ptr() : nullptr; }
};

// The pools may share pages, a slot's state behind its history: then neither reaches into the other's part of a page.
bool pools_apart(const at::Tensor& conv_state, const at::Tensor& ssm_state) {
  const Span conv(conv_state);
  const Span ssm(ssm_state);
  if (!conv.meets(ssm)) return true;
  const auto slot_bytes = [](const at::Tensor& pool) { return pool.numel() / pool.size(0) * pool.element_size(); };
  const int64_t page = conv_state.stride(0) * conv_state.element_size();
  if (page != ssm_state.stride(0) * ssm_state.element_size()) return false;
  const int64_t distance = static_cast<int64_t>(ssm.begin - conv.begin) % page;
  const int64_t behind = distance < 0 ? distance + page : distance;
  return behind >= slot_bytes(conv_state) && page - behind >= slot_bytes(ssm_state);
}

void check_layer(const Checks& check, const Layer& layer, const Tokens& tokens) {
  const auto& [qkvz, conv_state, conv_weight, conv_bias, conv_slots, A_log, dt_bias, ba, ssm_state, ssm_slots, output,
               z_out, H, HV, K, V, scale, interleaved] = layer;
  check.expect(H > 0, "H", "at least one key head, found ", H);
  check.expect(HV > 0 && HV % H == 0, "HV", "a multiple of H, ", H, ", found ", HV);
  check.expect(K == kHeadDim, "K", kHeadDim, ", found ", K);
  check.expect(V == kHeadDim, "V", kHeadDim, ", found ", V);
  const Size channels = (2 * H + HV) * kHeadDim;
  const Size columns = channels + HV * kHeadDim;
  const int64_t least_rows = tokens.rows ? 0 : static_cast<int64_t>(tokens.sequences);
  check.rows("qkvz", qkvz)
      .dtype(at::kHalf)
      .expect(qkvz.dim() == 2 && qkvz.size(0) >= least_rows && qkvz.size(1) == columns, "shape [", least_rows,
              " or more, ", columns, "], found ", qkvz.sizes());
  const int64_t rows = qkvz.size(0);
  check.rows("conv_state", conv_state)
      .dtype(at::kHalf)
      .expect(conv_state.dim() == 3 && conv_state.size(0) > 0 && conv_state.size(1) == kHistory &&
                  conv_state.size(2) == channels,
              "shape [slots, ", kHistory, ", ", channels, "], found ", conv_state.sizes());
  check("conv_weight", conv_weight).dtype(at::kHalf).elements(channels * (kHistory + 1));
  check("conv_bias", conv_bias).dtype(at::kHalf).elements(channels);
  check("A_log", A_log).dtype(at::kHalf).elements(HV);
  check("dt_bias", dt_bias).dtype(at::kHalf).elements(HV);
  check.rows("ba", ba).dtype(at::kHalf).expect(ba.dim() == 2 && ba.size(0) >= rows && ba.size(1) == 2 * HV, "shape [",
                                               rows, " or more, ", 2 * HV, "], found ", ba.sizes());
  check.rows("ssm_state", ssm_state)
      .dtype(at::kHalf)
      .expect(ssm_state.dim() == 4 && ssm_state.size(0) > 0 && ssm_state.size(1) == HV && ssm_state.size(2) == V &&
                  ssm_state.size(3) == K,
              "shape [slots, ", HV, ", ", V, ", ", K, "], found ", ssm_state.sizes());
  for (const auto& [name, slots] : {conv_slots, ssm_slots}) {
    check(name, slots).dtype(at::kInt).rows_of(tokens.sequences, tokens.steps);
  }
  const int64_t used = static_cast<int64_t>(tokens.sequences) * static_cast<int64_t>(tokens.steps);
  check(conv_slots.first, conv_slots.second).below("slots", conv_state.size(0)).different("slots", used);
  check(ssm_slots.first, ssm_slots.second).below("slots", ssm_state.size(0)).different("slots", used);
  for (const auto& [name, out] : {Named{"output", output}, Named{"z_out", z_out}}) {
    check(name, out).dtype(at::kHalf).rows_of(rows, HV * V);
  }
  const std::initializer_list<Named> read{{"qkvz", qkvz}, {"conv_weight", conv_weight}, {"conv_bias", conv_bias},
                                          {"A_log", A_log}, {"dt_bias", dt_bias}, {"ba", ba}, conv_slots, ssm_slots};
  check.apart({{"output", output}, {"z_out", z_out}}, read);
  for (const auto& [name, pool] : {Named{"conv_state", conv_state}, Named{"ssm_state", ssm_state}}) {
    check.rows(name, pool).apart_from(read).apart_from({{"output", output}, {"z_out", z_out}});
  }
  check.rows("conv_state", conv_state)
      .expect(pools_apart(conv_state, ssm_state), "memory of its own, found it overlapping 'ssm_state'");
}

at::Tensor run(const Layer& layer, const Tokens& tokens) {
  const auto& [qkvz, conv_state, conv_weight, conv_bias, conv_slots, A_log, dt_bias, ba, ssm_state, ssm_slots, output,
               z_out, H, HV, K, V, scale, interleaved] = layer;
  const int64_t rows = qkvz.size(0);
  const Queue in_order = queue(qkvz);
  const bool wide = side_by_side(in_order, {qkvz.stride(0), conv_state.stride(0), ssm_state.stride(0)},
                                 {qkvz.const_data_ptr(), conv_state.const_data_ptr(), conv_weight.const_data_ptr(),
                                  conv_bias.const_data_ptr(), ssm_state.const_data_ptr(), z_out.const_data_ptr(),
                                  output.const_data_ptr()});
  const char* const kinds = wide ? "<half, 8>" : "<half, 1>";
  nd_launch(in_order, {tokens.sequences * HV * kGdnParts, kGroupSize}, kernel(std::string("gdn/gdn") + kinds),
            qkvz.const_data_ptr(), qkvz.stride(0), ba.const_data_ptr(), ba.stride(0), conv_state.const_data_ptr(),
            conv_state.stride(0), conv_slots.second.const_data_ptr(), conv_state.size(0), conv_weight.const_data_ptr(),
            conv_bias.const_data_ptr(), A_log.const_data_ptr(), dt_bias.const_data_ptr(), ssm_state.mutable_data_ptr(),
            ssm_state.stride(0), ssm_slots.second.const_data_ptr(), ssm_state.size(0), output.mutable_data_ptr(),
            z_out.mutable_data_ptr(), tokens.row_numbers(), tokens.accepted_counts(), rows, tokens.steps, H, HV,
            static_cast<int64_t>(interleaved), static_cast<float>(scale));
  const int64_t groups = at::ceil_div<int64_t>((2 * H + HV) * kHeadDim, kGroupSize);
  nd_launch(in_order, {tokens.sequences * groups, wide ? kGroupSize / kSideBySide : kGroupSize},
            kernel(std::string("gdn/gdn_history") + kinds), qkvz.const_data_ptr(), qkvz.stride(0),
            conv_state.mutable_data_ptr(), conv_state.stride(0), conv_slots.second.const_data_ptr(), conv_state.size(0),
            tokens.row_numbers(), tokens.accepted_counts(), rows, tokens.steps, H, HV,
            static_cast<int64_t>(interleaved), groups);
  return output;
}

at::Tensor one_token(const char* op, const Layer& layer, int64_t N) {
  const Checks check(op, layer.qkvz);
  check.expect(N >= 0, "N", "no negative count, found ", N);
  const Tokens tokens{N};
  check_layer(check, layer, tokens);
  return run(layer, tokens);
}

}  // namespace

at::Tensor gdn_conv_fused(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                          at::Tensor conv_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                          at::Tensor ssm_state, at::Tensor ssm_state_indices, at::Tensor output, at::Tensor z_out,
                          int64_t N, int64_t H, int64_t HV, int64_t K, int64_t V, double scale) {
  const Named conv_slots{"conv_state_indices", conv_state_indices};
  const Named ssm_slots{"ssm_state_indices", ssm_state_indices};
  const Layer layer{qkvz,      conv_state, conv_weight, conv_bias, conv_slots, A_log, dt_bias, ba,    ssm_state,
                    ssm_slots, output,     z_out,       H,         HV,         K,     V,       scale, true};
  return one_token("esimd_gdn_conv_fused", layer, N);
}

at::Tensor gdn_conv_fused_seq(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                              at::Tensor conv_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                              at::Tensor ssm_state, at::Tensor ssm_state_indices, at::Tensor output, at::Tensor z_out,
                              int64_t N, int64_t H, int64_t HV, int64_t K, int64_t V, double scale) {
  const Named conv_slots{"conv_state_indices", conv_state_indices};
  const Named ssm_slots{"ssm_state_indices", ssm_state_indices};
  const Layer layer{qkvz,      conv_state, conv_weight, conv_bias, conv_slots, A_log, dt_bias, ba,    ssm_state,
                    ssm_slots, output,     z_out,       H,         HV,         K,     V,       scale, false};
  return one_token("esimd_gdn_conv_fused_seq", layer, N);
}

at::Tensor gdn_conv_fused_seq_spec(at::Tensor qkvz, at::Tensor conv_state, at::Tensor conv_weight, at::Tensor conv_bias,
                                   at::Tensor spec_state_indices, at::Tensor A_log, at::Tensor dt_bias, at::Tensor ba,
                                   at::Tensor ssm_state, at::Tensor output, at::Tensor z_out, at::Tensor token_indx,
                                   at::Tensor num_accepted_tokens, int64_t num_spec_decodes, int64_t num_spec_tokens,
                                   int64_t H, int64_t HV, int64_t K, int64_t V, double scale) {
  const Checks check("esimd_gdn_conv_fused_seq_spec", qkvz);
  check.expect(num_spec_decodes > 0, "num_spec_decodes", "at least one sequence, found ", num_spec_decodes);
  check.expect(num_spec_tokens > 0, "num_spec_tokens", "at least one token, found ", num_spec_tokens);
  const Named slots{"spec_state_indices", spec_state_indices};
  const Layer layer{qkvz,  conv_state, conv_weight, conv_bias, slots, A_log, dt_bias, ba,    ssm_state,
                    slots, output,     z_out,       H,         HV,    K,     V,       scale, /*interleaved=*/false};
  const Tokens tokens{num_spec_decodes, num_spec_tokens, &token_indx, &num_accepted_tokens};
  check_layer(check, layer, tokens);
  check("token_indx", token_indx)
      .dtype(at::kInt)
      .elements(tokens.sequences * tokens.steps)
      .within("rows", 0, qkvz.size(0));
  check("num_accepted_tokens", num_accepted_tokens)
      .dtype(at::kInt)
      .elements(num_spec_decodes)
      .within("counts", 0, num_spec_tokens + 1);
  return run(layer, tokens);
}

}  // namespace esimd_ops
