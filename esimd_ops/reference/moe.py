"""Mixture of experts: routing, moving rows to their experts and back, activations, grouped products.

E experts, T tokens, topk experts a token. Rows that an operator does not name keep what
they hold, so every output here starts as a copy.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .parts import Decoder, Expected, block_weight, fp8, gelu_tanh, kept, rounded, silu, terms


def _top(
    router_logits: Tensor, top_values: Tensor, top_indices: Tensor, T: int, topk: int, compute: torch.dtype
) -> Expected:
    probabilities = torch.softmax(router_logits[:T].to(compute), -1)
    ordered = torch.sort(probabilities, dim=-1, descending=True, stable=True)  # stable: ties to the lowest index
    values, indices = ordered.values[:, :topk], ordered.indices[:, :topk]
    new = {"top_values": kept(top_values, compute), "top_indices": top_indices.clone()}
    new["top_values"][:T] = rounded(values / values.sum(-1, keepdim=True))
    new["top_indices"][:T] = indices.int()
    return new


def esimd_moe_topk(
    router_logits: Tensor, top_values: Tensor, top_indices: Tensor, T: int, *, compute: torch.dtype = torch.float32
) -> Expected:
    """router_logits [T, 128], top_values [T, 8], top_indices [T, 8] int32: the 8 largest of `softmax(router_logits)`
    in descending order, ties to the lowest index, divided by their sum."""
    return _top(router_logits, top_values, top_indices, T, 8, compute)


def topk_v2(
    router_logits: Tensor,
    top_values: Tensor,
    top_indices: Tensor,
    T: int,
    topk: int,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_moe_topk for [T, num_experts] and [T, topk]: 128, 256 or 512 experts, 8 or 10 of them."""
    return _top(router_logits, top_values, top_indices, T, topk, compute)


def esimd_moe_scatter(
    hidden_states: Tensor,
    router_top_value: Tensor,
    sorted_token_ids: Tensor,
    scattered_hidden: Tensor,
    scattered_weights: Tensor,
    topk: int,
    total_expanded: int,
) -> Expected:
    """hidden_states [T, K], router_top_value [T, topk], sorted_token_ids [total_expanded] int32 with `t * topk + slot`,
    scattered_hidden [total_expanded, K], scattered_weights [total_expanded]: row d is a copy of token t, and its weight
    that of the slot."""
    new = {"scattered_hidden": scattered_hidden.clone(), "scattered_weights": scattered_weights.clone()}
    ids = sorted_token_ids[:total_expanded].long()
    new["scattered_hidden"][:total_expanded] = hidden_states[ids // topk]
    new["scattered_weights"][:total_expanded] = router_top_value.flatten()[ids]
    return new


def esimd_moe_scatter_fused(
    hidden_states: Tensor,
    top_values: Tensor,
    top_indices: Tensor,
    scattered_hidden: Tensor,
    scattered_weights: Tensor,
    topk_ids: Tensor,
    topk: int,
    T: int,
    num_experts: int,
) -> Expected:
    """hidden_states [T, K], top_values [T, topk], top_indices [T, topk] int32, scattered_hidden [T * topk, K],
    scattered_weights [T * topk], topk_ids [T * topk], expert_start [num_experts + 1], max_tokens_out [1], all int32.

    Rows are grouped by expert: expert_start holds where each group starts, max_tokens_out the size of the largest, and
    topk_ids where each (token, slot) went. The order within a group is the operator's choice; here it is that of the
    tokens.
    """
    flat = top_indices[:T].flatten().long()
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=num_experts)
    new = {
        "scattered_hidden": scattered_hidden.clone(),
        "scattered_weights": scattered_weights.clone(),
        "topk_ids": topk_ids.clone(),
        "expert_start": torch.cat((counts.new_zeros(1), counts.cumsum(0))).int(),
        "max_tokens_out": counts.max().int()[None],
    }
    new["scattered_hidden"][: T * topk] = hidden_states[order // topk]
    new["scattered_weights"][: T * topk] = top_values[:T].flatten()[order]
    destinations = torch.empty_like(order)
    destinations[order] = torch.arange(T * topk, device=order.device)
    new["topk_ids"].view(-1)[: T * topk] = destinations.int()
    return new


def esimd_moe_gather(
    moe_output: Tensor,
    topk_ids: Tensor,
    scattered_weights: Tensor,
    final_hidden: Tensor,
    topk: int,
    T: int,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """moe_output [rows, K], topk_ids [T, topk] int32 rows, scattered_weights [rows], final_hidden [T, K]:
    `final_hidden[t] = sum of moe_output[r] * scattered_weights[r] for r in topk_ids[t]`, rounded once."""
    rows = topk_ids.reshape(-1)[: T * topk].reshape(T, topk).long()
    weighted = moe_output[rows].to(compute) * scattered_weights[rows].to(compute)[..., None]
    new = kept(final_hidden, compute)
    new[:T] = rounded(terms(weighted).sum(1))
    return {"final_hidden": new}


def _activated(
    input: Tensor,
    output: Tensor,
    N_half: int,
    total_rows: int,
    activation: Callable[[Tensor], Tensor],
    compute: torch.dtype,
) -> Expected:
    gate, up = input[:total_rows, : 2 * N_half].to(compute).split(N_half, -1)
    new = kept(output, compute)
    new[:total_rows] = rounded(activation(gate) * up)
    return {"output": new}


def esimd_moe_silu_mul(
    input: Tensor, output: Tensor, N_half: int, total_rows: int, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [total_rows, N_gate_up], output [total_rows, N_half]: `output = silu(gate) * up`, where gate is the first
    N_half columns and up the next."""
    return _activated(input, output, N_half, total_rows, silu, compute)


def esimd_moe_gelu_tanh_mul(
    input: Tensor, output: Tensor, N_half: int, total_rows: int, *, compute: torch.dtype = torch.float32
) -> Expected:
    """As esimd_moe_silu_mul with gelu_tanh."""
    return _activated(input, output, N_half, total_rows, gelu_tanh, compute)


def _grouped(
    input: Tensor,
    output: Tensor,
    expert_idx: Tensor,
    num_experts: int,
    compute: torch.dtype,
    weight_of: Callable[[int], Tensor],
    scale_of: Callable[[int], Tensor | float],
) -> Expected:
    """Expert e multiplies the rows from expert_idx[e] to expert_idx[e + 1]."""
    new = kept(output, compute)
    starts = expert_idx.tolist()
    for e in range(num_experts):
        rows = slice(starts[e], starts[e + 1])
        if rows.start < rows.stop:
            new[rows] = rounded(terms((terms(input[rows].to(compute)) @ terms(weight_of(e)).T) * scale_of(e)))
    return {"output": new}


def esimd_moe_gemm_fp8(
    input: Tensor,
    weight: Tensor,
    scale: Tensor,
    output: Tensor,
    expert_idx: Tensor,
    num_experts: int,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """input [total, K], weight [E, N, K] bytes taken as E5M2 whatever their dtype, scale [E, N] fp32, output
    [total, N], expert_idx [E + 1] int32: `output[r] = scale[e] * (input[r] @ weight[e].T)` for the rows from
    expert_idx[e] to expert_idx[e + 1]."""
    return _grouped(
        input,
        output,
        expert_idx,
        num_experts,
        compute,
        lambda e: fp8(weight[e], Decoder.RAW, compute),
        lambda e: scale[e].to(compute),
    )


esimd_moe_gemm_fp8_pert = esimd_moe_gemm_fp8  # with scale [E], one for an expert


def esimd_moe_gemm_fp8_blockscale(
    input: Tensor,
    weight: Tensor,
    weight_scale: Tensor,
    output: Tensor,
    expert_idx: Tensor,
    num_experts: int,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """input [total, K], weight [E, N, K] E4M3, weight_scale [E, ceil(N/128), K/128] fp32, output [total, N], expert_idx
    [E + 1] int32: `output[r] = input[r] @ (weight[e] * weight_scale[e]).T` for the rows of expert e, every code exact.

    From 128 rows on the original library rounds scales and scaled weights to half, which costs it about 2^-11 of each
    weight; here they are never rounded.
    """
    return _grouped(
        input,
        output,
        expert_idx,
        num_experts,
        compute,
        lambda e: block_weight(weight[e], weight_scale[e], compute),
        lambda _: 1.0,
    )
