// Which experts a token goes to, and moving its row there and back.
#include <ATen/ceil_div.h>

#include "checks.h"
#include "device/tile.h"
#include "ops.h"
#include "runtime.h"

namespace esimd_ops {
namespace {

// [at least `rows`, columns]: what is past them is not touched.
void check_rows(const Checks& check, const char* name, const at::Tensor& tensor, at::ScalarType dtype, int64_t rows,
                int64_t columns) {
  check(name, tensor)
      .dtype(dtype)
      .expect(tensor.dim() == 2 && tensor.size(0) >= rows && tensor.size(1) == columns, "shape [", rows, " or more, ",
              columns, "], found ", tensor.sizes());
}

void check_at_least(const Checks& check, const char* name, const at::Tensor& tensor, at::ScalarType dtype,
                    Size count) {
  check(name, tensor)
      .dtype(dtype)
      .expect(tensor.numel() >= count, count, " elements or more, found shape ", tensor.sizes());
}

// The rows of indices that an operator looks at, [rows, width]; there are at least so many.
at::Tensor first_rows(const at::Tensor& indices, int64_t rows, int64_t width) {
  return indices.as_strided({rows, width}, {width, 1});
}

void check_counts(const Checks& check, std::initializer_list<std::pair<const char*, int64_t>> counts) {
  for (const auto& [name, count] : counts) check.expect(count >= 0, name, "no negative count, found ", count);
}

at::Tensor topk(const Checks& check, const at::Tensor& router_logits, const at::Tensor& top_values,
                const at::Tensor& top_indices, int64_t T, int64_t experts, int64_t k) {
  check_counts(check, {{"T", T}});
  check_rows(check, "router_logits", router_logits, at::kHalf, T, experts);
  check_rows(check, "top_values", top_values, at::kHalf, T, k);
  check_rows(check, "top_indices", top_indices, at::kInt, T, k);
  check.apart({{"top_values", top_values}, {"top_indices", top_indices}}, {{"router_logits", router_logits}});

  nd_launch(queue(router_logits), {T, kSubGroupSize}, kernel("moe/topk<half>"), router_logits.const_data_ptr(),
            top_values.mutable_data_ptr(), top_indices.mutable_data_ptr(), experts, k);
  return top_values;
}

}  // namespace

at::Tensor moe_topk(at::Tensor router_logits, at::Tensor top_values, at::Tensor top_indices, int64_t T) {
  const Checks check("esimd_moe_topk", router_logits);
  return topk(check, router_logits, top_values, top_indices, T, /*experts=*/128, /*k=*/8);
}

at::Tensor topk_v2(at::Tensor router_logits, at::Tensor top_values, at::Tensor top_indices, int64_t T,
                   int64_t num_experts, int64_t topk) {
  const Checks check("topk_v2", router_logits);
  check.expect(num_experts == 128 || num_experts == 256 || num_experts == 512, "num_experts", "128, 256 or 512, found ",
               num_experts);
  check.expect(topk == 8 || topk == 10, "topk", "8 or 10, found ", topk);
  return esimd_ops::topk(check, router_logits, top_values, top_indices, T, num_experts, topk);
}

at::Tensor moe_scatter(at::Tensor hidden_states, at::Tensor router_top_value, at::Tensor sorted_token_ids,
                       at::Tensor scattered_hidden, at::Tensor scattered_weights, int64_t K, int64_t topk,
                       int64_t total_expanded) {
  const Checks check("esimd_moe_scatter", hidden_states);
  check.expect(topk > 0, "topk", "at least one choice a token, found ", topk);
  check_counts(check, {{"K", K}, {"total_expanded", total_expanded}});
  check_rows(check, "hidden_states", hidden_states, at::kHalf, 0, K);
  const Size choices = Size(hidden_states.size(0)) * topk;
  check("router_top_value", router_top_value).dtype(at::kHalf).elements(choices);
  check_at_least(check, "sorted_token_ids", sorted_token_ids, at::kInt, total_expanded);
  check("sorted_token_ids", first_rows(sorted_token_ids, total_expanded, 1)).within("choices", 0, choices);
  check_rows(check, "scattered_hidden", scattered_hidden, at::kHalf, total_expanded, K);
  check_at_least(check, "scattered_weights", scattered_weights, at::kHalf, total_expanded);
  check.apart({{"scattered_hidden", scattered_hidden}, {"scattered_weights", scattered_weights}},
              {{"hidden_states", hidden_states},
               {"router_top_value", router_top_value},
               {"sorted_token_ids", sorted_token_ids}});

  nd_launch(queue(hidden_states), {total_expanded, kGroupSize}, kernel("moe/scatter<half>"),
            hidden_states.const_data_ptr(), router_top_value.const_data_ptr(), sorted_token_ids.const_data_ptr(),
            scattered_hidden.mutable_data_ptr(), scattered_weights.mutable_data_ptr(), K, topk, choices);
  return scattered_hidden;
}

// Counting sort in three passes over blocks of choices, then the rows: no order depends on who comes first.
at::Tensor moe_scatter_fused(at::Tensor hidden_states, at::Tensor top_values, at::Tensor top_indices,
                             at::Tensor scattered_hidden, at::Tensor scattered_weights, at::Tensor topk_ids,
                             at::Tensor expert_start, at::Tensor max_tokens_out, int64_t K, int64_t topk, int64_t T,
                             int64_t num_experts) {
  const Checks check("esimd_moe_scatter_fused", hidden_states);
  check.expect(topk > 0, "topk", "at least one choice a token, found ", topk);
  check.expect(num_experts > 0, "num_experts", "at least one expert, found ", num_experts);
  check_counts(check, {{"K", K}, {"T", T}});
  const Size choices = Size(T) * topk;
  check_rows(check, "hidden_states", hidden_states, at::kHalf, T, K);
  check_rows(check, "top_values", top_values, at::kHalf, T, topk);
  check_rows(check, "top_indices", top_indices, at::kInt, T, topk);
  check("top_indices", first_rows(top_indices, T, topk)).within("experts", 0, num_experts);
  check_rows(check, "scattered_hidden", scattered_hidden, at::kHalf, choices, K);
  check_at_least(check, "scattered_weights", scattered_weights, at::kHalf, choices);
  check_at_least(check, "topk_ids", topk_ids, at::kInt, choices);
  check("expert_start", expert_start).int32().elements(Size(num_experts) + 1);
  check("max_tokens_out", max_tokens_out).dtype(at::kInt).elements(1);
  check.apart({{"scattered_hidden", scattered_hidden},
               {"scattered_weights", scattered_weights},
               {"topk_ids", topk_ids},
               {"expert_start", expert_start},
               {"max_tokens_out", max_tokens_out}},
              {{"hidden_states", hidden_states}, {"top_values", top_values}, {"top_indices", top_indices}});

  const int64_t blocks = at::ceil_div<int64_t>(choices, kGroupSize);
  const at::Tensor counts = temporary(top_indices, {blocks, num_experts}, at::kInt);
  const Queue in_order = queue(hidden_states);
  nd_launch(in_order, {blocks, kGroupSize}, kernel("moe/count_choices<int32_t>"), top_indices.const_data_ptr(),
            counts.mutable_data_ptr(), choices, num_experts);
  nd_launch(in_order, {1, kGroupSize}, kernel("moe/start_experts<int32_t>"), counts.mutable_data_ptr(),
            expert_start.mutable_data_ptr(), max_tokens_out.mutable_data_ptr(), blocks, num_experts);
  nd_launch(in_order, {blocks, kGroupSize}, kernel("moe/place_choices<int32_t>"), top_indices.const_data_ptr(),
            counts.const_data_ptr(), expert_start.const_data_ptr(), topk_ids.mutable_data_ptr(), choices, num_experts);
  nd_launch(in_order, {choices, kGroupSize}, kernel("moe/scatter_to<half>"), hidden_states.const_data_ptr(),
            top_values.const_data_ptr(), topk_ids.const_data_ptr(), scattered_hidden.mutable_data_ptr(),
            scattered_weights.mutable_data_ptr(), K, topk);
  return scattered_hidden;
}

at::Tensor moe_gather(at::Tensor moe_output, at::Tensor topk_ids, at::Tensor scattered_weights, at::Tensor final_hidden,
                      int64_t K, int64_t topk, int64_t T) {
  const Checks check("esimd_moe_gather", moe_output);
  check.expect(topk > 0, "topk", "at least one choice a token, found ", topk);
  check_counts(check, {{"K", K}, {"T", T}});
  check_rows(check, "moe_output", moe_output, at::kHalf, 0, K);
  check("topk_ids", topk_ids).dtype(at::kInt).rows_of(T, topk);
  check("topk_ids", first_rows(topk_ids, T, topk)).within("rows", 0, moe_output.size(0));
  check_at_least(check, "scattered_weights", scattered_weights, at::kHalf, moe_output.size(0));
  check_rows(check, "final_hidden", final_hidden, at::kHalf, T, K);
  check.apart({{"final_hidden", final_hidden}},
              {{"moe_output", moe_output}, {"topk_ids", topk_ids}, {"scattered_weights", scattered_weights}});

  nd_launch(queue(moe_output), {T, kGroupSize}, kernel("moe/gather<half>"), moe_output.const_data_ptr(),
            topk_ids.const_data_ptr(), scattered_weights.const_data_ptr(), final_hidden.mutable_data_ptr(), K, topk,
            moe_output.size(0));
  return final_hidden;
}

}  // namespace esimd_ops
