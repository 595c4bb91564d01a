"""Samples of the mixture of experts: uneven experts, experts without tokens, ties, rows that nobody owns."""

from typing import Any

import torch
from torch import Tensor

from .build import (
    BLOCKS,
    Arguments,
    Choices,
    activations,
    block_scales,
    fp8_matrix,
    normal,
    poison,
    poison_int,
    sizes,
    tokens,
)


def logits(T: int, E: int, variant: str) -> Tensor:
    """[T, E] on a grid so coarse that different logits have different probabilities; "ties" has few values, "spread"
    large ones and ones far apart."""
    grid = 1.0 if variant == "ties" else 64.0
    values = (torch.randn(T, E) * 2 * grid).round() / grid
    if variant == "spread":  # past what exp() of the largest, or of the smallest, can hold
        values = values * 16 + 100
        values[1::2] *= -1  # the largest of a row may be far below zero
    if variant == "ties":
        values[0] = 0
    return values.half()


def moe_topk(T: int, variant: str = "") -> Arguments:
    return topk_v2(T, 128, 8, variant)


def topk_v2(T: int, num_experts: int, topk: int, variant: str = "") -> Arguments:
    rows = T + (variant == "more-rows")
    return {
        "router_logits": logits(rows, num_experts, variant),
        "top_values": poison(rows, topk),
        "top_indices": poison_int(rows, topk),
        "T": T,
        "num_experts": num_experts,
        "topk": topk,
    }


def routing(T: int, topk: int, E: int, variant: str = "") -> Tensor:
    """[T, topk] int32 experts, distinct in a row; "one-expert" sends the first choice of every token to expert 1."""
    chosen = torch.rand(T, E).topk(topk, -1).indices
    if variant == "one-expert":
        chosen = (torch.arange(topk) + 1).repeat(T, 1)
    return chosen.int()


def moe_scatter(T: int, topk: int, E: int, K: int, variant: str = "") -> Arguments:
    rows = T * topk + (variant == "more-rows")
    ids = torch.argsort(routing(T, topk, E).flatten(), stable=True).int()
    if variant == "outliers":
        ids[-1] = ids[0]  # one twice
    return {
        "hidden_states": activations(T, K, variant=variant),
        "router_top_value": router_weights(T, topk, variant=variant),
        "sorted_token_ids": ids,
        "scattered_hidden": poison(rows, K),
        "scattered_weights": poison(rows),
        "K": K,
        "topk": topk,
        "total_expanded": T * topk,
    }


def router_weights(*shape: int, variant: str = "") -> Tensor:
    """Within 0 and 1; of "outliers" any numbers, since nothing asks that they be probabilities."""
    return activations(*shape, variant=variant) if variant == "outliers" else torch.rand(*shape).half()


def moe_scatter_fused(T: int, topk: int, E: int, K: int, variant: str = "") -> Arguments:
    rows = T + 2 * (variant == "more-rows")
    return {
        "hidden_states": activations(rows, K, variant=variant),
        "top_values": router_weights(rows, topk, variant=variant),
        "top_indices": routing(rows, topk, E, variant),
        "scattered_hidden": poison(rows * topk, K),
        "scattered_weights": poison(rows * topk),
        "topk_ids": poison_int(rows * topk),
        "expert_start": poison_int(E + 1),
        "max_tokens_out": poison_int(1),
        "K": K,
        "topk": topk,
        "T": T,
        "num_experts": E,
    }


def moe_gather(T: int, topk: int, K: int, variant: str = "") -> Arguments:
    rows = T * topk + 1
    ids = torch.randperm(rows)[: T * topk].reshape(T, topk).int()
    moe_output, weights = activations(rows, K, variant=variant), router_weights(rows, variant=variant)
    if variant == "outliers":
        ids[0, 1] = ids[0, 0]  # one twice
        moe_output[ids[1]] = activations(topk, K, variant="tiny")
        moe_output[ids[2]], weights[ids[2]] = normal(topk, K), normal(topk, spread=2e-5)
    return {
        "moe_output": moe_output,
        "topk_ids": ids,
        "scattered_weights": weights,
        "final_hidden": poison(T + (variant == "more-rows"), K),
        "K": K,
        "topk": topk,
        "T": T,
    }


def moe_act(total_rows: int, N_half: int, variant: str = "") -> Arguments:
    rows = total_rows + (variant == "more-rows")
    N_gate_up = 2 * N_half + (64 if variant == "wide" else 0)
    return {
        "input": activations(rows, N_gate_up, variant=variant, spread=5.0),
        "output": poison(rows, N_half),
        "N_gate_up": N_gate_up,
        "N_half": N_half,
        "total_rows": total_rows,
    }


def intervals(E: int, T: int, variant: str) -> tuple[Tensor, int]:
    """[E + 1] int32 starts of T rows spread unevenly, and all rows; "uncovered" has rows before, between no experts
    and after that nobody owns."""
    counts = torch.bincount((torch.rand(T) ** 2 * E).long(), minlength=E)
    before = 2 if variant == "uncovered" else 0
    starts = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0))) + before
    return starts.int(), T + before + (3 if variant == "uncovered" else 0)


def moe_gemm_fp8(E: int, N: int, K: int, T: int, variant: str = "", *, scales: tuple[int, ...] = ()) -> Arguments:
    scales = scales or (E, N)
    scale = torch.ones(scales) if variant.endswith("-codes") else torch.rand(scales) * 0.02 + 0.01
    expert_idx, rows = intervals(E, T, variant)
    bits = fp8_matrix(E * N, K, "e5m2-codes" if variant.endswith("-codes") else "e5m2").view(E, N, K)
    return {
        "input": tokens(rows, K, variant),
        # The bits are E5M2 whatever the dtype says.
        "weight": bits.view(torch.float8_e4m3fn) if variant == "e4m3-by-name" else bits,
        "scale": scale,
        "output": poison(rows, N),
        "expert_idx": expert_idx,
        "N": N,
        "K": K,
        "num_experts": E,
        "max_tokens_per_expert": int(expert_idx.diff().max()),
    }


def moe_gemm_fp8_pert(E: int, *sizes: Any) -> Arguments:
    return moe_gemm_fp8(E, *sizes, scales=(E,))


def moe_gemm_fp8_blockscale(E: int, N: int, K: int, T: int, variant: str = "e4m3") -> Arguments:
    expert_idx, rows = intervals(E, T, variant)
    fp8 = "e4m3" if variant == "uncovered" else variant
    return {
        "input": tokens(rows, K, fp8),
        "weight": fp8_matrix(E * N, K, fp8).view(E, N, K),
        "weight_scale": torch.stack([block_scales(N, K, fp8) for _ in range(E)]),
        "output": poison(rows, N),
        "expert_idx": expert_idx,
        "N": N,
        "K": K,
        "num_experts": E,
        **BLOCKS,
    }


# Experts, N, K, tokens.
GROUPED = sizes(
    "8x64x256x24 1x1x64x1 3x65x144x40xuncovered 16x33x512x5xe4m3-by-name 2x17x128x300 "
    "2x33x4608x9xtiny 300x4x64x40 2x1040x2560x6xoutliers"
)
ACTIVATIONS = sizes("8x512 1x64 3x192xwide 5x320xmore-rows 4x7 128x64 3x1088xoutliers")

SIZES: Choices = {
    "esimd_moe_topk": (moe_topk, sizes("4 1 67 5xties 3xmore-rows 128xspread")),
    "topk_v2": (
        topk_v2,
        sizes("4x128x8 1x256x10 33x512x10 5x256x8xties 3x512x8xmore-rows 2x128x10xties 128x256x8xspread"),
    ),
    "esimd_moe_scatter": (
        moe_scatter,
        sizes("4x8x32x256 1x1x8x128 33x2x16x384 3x2x8x128xmore-rows 5x3x8x100 140x2x8x128 3x2x8x4224xoutliers"),
    ),
    "esimd_moe_scatter_fused": (
        moe_scatter_fused,
        sizes(
            "4x8x128x256 1x1x32x128 70x4x64x384 33x2x32x128xone-expert 6x2x32x128xmore-rows 5x3x9x100 "
            "128x2x32x128 4x10x512x4224xoutliers 300x2x32x128xone-expert"
        ),
    ),
    "esimd_moe_gather": (
        moe_gather,
        sizes("4x8x256 1x1x128 33x10x384 3x2x128xmore-rows 5x3x100 128x8x128 40x3x4224xoutliers"),
    ),
    "esimd_moe_silu_mul": (moe_act, ACTIVATIONS),
    "esimd_moe_gelu_tanh_mul": (moe_act, ACTIVATIONS),
    "esimd_moe_gemm_fp8": (moe_gemm_fp8, (*GROUPED, *sizes("1x256x256x3xe5m2-codes"))),
    "esimd_moe_gemm_fp8_pert": (moe_gemm_fp8_pert, (*GROUPED, *sizes("1x256x256x3xe5m2-codes"))),
    "esimd_moe_gemm_fp8_blockscale": (
        moe_gemm_fp8_blockscale,
        sizes(
            "8x64x256x24 1x1x128x1 3x130x384x40xuncovered 4x65x256x300xuint8 2x33x4608x9xtiny "
            "1x256x128x3xe4m3-codes 1x256x128x130xe4m3-codes 300x4x128x40 2x1040x2560x6xoutliers"
        ),
    ),
}
