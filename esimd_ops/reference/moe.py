"""Mixture of experts: routing, moving rows to their experts and back, activations, grouped products.

Rows that an operator does not name keep what they hold, so every output here starts as a copy.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .parts import CallArguments, Decoder, Tensors, block_weight, fp8, gelu_tanh, kept, rounded, silu, terms


def _top(call: CallArguments, topk: int) -> Tensors:
    """The largest of `softmax(router_logits)` in descending order, divided by their sum."""
    T = call.T
    probabilities = torch.softmax(call.router_logits[:T].to(call.compute), -1)
    ordered = torch.sort(probabilities, dim=-1, descending=True, stable=True)  # stable: ties to the lowest index
    values, indices = ordered.values[:, :topk], ordered.indices[:, :topk]
    new = {"top_values": kept(call.top_values, call.compute), "top_indices": call.top_indices.clone()}
    new["top_values"][:T] = rounded(values / values.sum(-1, keepdim=True))
    new["top_indices"][:T] = indices.int()
    return new


def esimd_moe_topk(call: CallArguments) -> Tensors:
    return _top(call, 8)


def topk_v2(call: CallArguments) -> Tensors:
    return _top(call, call.topk)


def esimd_moe_scatter(call: CallArguments) -> Tensors:
    """Row d is a copy of token t, and its weight that of the slot, where sorted_token_ids[d] is `t * topk + slot`."""
    rows = call.total_expanded
    new = {name: getattr(call, name).clone() for name in ("scattered_hidden", "scattered_weights")}
    ids = call.sorted_token_ids[:rows].long()
    new["scattered_hidden"][:rows] = call.hidden_states[ids // call.topk]
    new["scattered_weights"][:rows] = call.router_top_value.flatten()[ids]
    return new


def esimd_moe_scatter_fused(call: CallArguments) -> Tensors:
    """Rows are grouped by expert: expert_start holds where each group starts, max_tokens_out the size of the largest,
    and topk_ids where each (token, slot) went. The order within a group is the operator's choice; here it is that of
    the tokens."""
    T, topk = call.T, call.topk
    flat = call.top_indices[:T].flatten().long()
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=call.num_experts)
    new = {name: getattr(call, name).clone() for name in ("scattered_hidden", "scattered_weights", "topk_ids")}
    new["expert_start"] = torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()
    new["max_tokens_out"] = counts.max().int()[None]
    new["scattered_hidden"][: T * topk] = call.hidden_states[order // topk]
    new["scattered_weights"][: T * topk] = call.top_values[:T].flatten()[order]
    destinations = torch.empty_like(order)
    destinations[order] = torch.arange(T * topk, device=order.device)
    new["topk_ids"].view(-1)[: T * topk] = destinations.int()
    return new


def esimd_moe_gather(call: CallArguments) -> Tensors:
    """`final_hidden[t] = sum of moe_output[r] * scattered_weights[r] for r in topk_ids[t]`, rounded once."""
    T, topk = call.T, call.topk
    rows = call.topk_ids.reshape(-1)[: T * topk].reshape(T, topk).long()
    weighted = call.moe_output[rows].to(call.compute) * call.scattered_weights[rows].to(call.compute)[..., None]
    new = kept(call.final_hidden, call.compute)
    new[:T] = rounded(terms(weighted).sum(1))
    return {"final_hidden": new}


def _activated(call: CallArguments, activation: Callable[[Tensor], Tensor]) -> Tensors:
    """`output = activation(gate) * up`, where gate is the first N_half columns and up the next."""
    rows, half = call.total_rows, call.N_half
    gate, up = call.input[:rows, : 2 * half].to(call.compute).split(half, -1)
    new = kept(call.output, call.compute)
    new[:rows] = rounded(activation(gate) * up)
    return {"output": new}


def esimd_moe_silu_mul(call: CallArguments) -> Tensors:
    return _activated(call, silu)


def esimd_moe_gelu_tanh_mul(call: CallArguments) -> Tensors:
    return _activated(call, gelu_tanh)


def _grouped(
    call: CallArguments, weight_of: Callable[[int], Tensor], scale_of: Callable[[int], Tensor | float]
) -> Tensors:
    """Expert e multiplies the rows from expert_idx[e] to expert_idx[e + 1]."""
    new = kept(call.output, call.compute)
    starts = call.expert_idx.tolist()
    for e in range(call.num_experts):
        rows = slice(starts[e], starts[e + 1])
        if rows.start < rows.stop:
            x = call.input[rows].to(call.compute)
            new[rows] = rounded(terms((terms(x) @ terms(weight_of(e)).T) * scale_of(e)))
    return {"output": new}


def esimd_moe_gemm_fp8(call: CallArguments) -> Tensors:
    """The bits of the weight are taken as E5M2 whatever their dtype."""
    return _grouped(call, lambda e: fp8(call.weight[e], Decoder.RAW, call.compute), lambda e: call.wide.scale[e])


esimd_moe_gemm_fp8_pert = esimd_moe_gemm_fp8  # with scale [E], one for an expert


def esimd_moe_gemm_fp8_blockscale(call: CallArguments) -> Tensors:
    """Every code is exact. From 128 rows on the original library rounds scales and scaled weights to half, which costs
    it about 2^-11 of each weight; here they are never rounded."""
    return _grouped(call, lambda e: block_weight(call.weight[e], call.weight_scale[e], call.compute), lambda _: 1.0)
