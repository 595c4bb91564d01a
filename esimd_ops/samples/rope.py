"""Samples of the operators that split a fused projection into heads."""

from typing import Any

import torch

from .build import Arguments, Choices, activations, norm_weight, poison, sizes

HEAD = 256
POSITIONS = 4096


def cos_sin_cache(rotary_dim: int) -> torch.Tensor:
    """[POSITIONS, rotary_dim] fp16, cosines then sines, of the usual base 10000."""
    frequency = 10000.0 ** -(torch.arange(0, rotary_dim, 2) / rotary_dim)
    angle = torch.arange(POSITIONS)[:, None] * frequency
    return torch.cat((angle.cos(), angle.sin()), -1).half()


def rope_weight(variant: str) -> torch.Tensor:
    """Added to 1 by the operator."""
    return norm_weight(HEAD, variant) - 1


def qkv_split_norm_rope(
    T: int, q_heads: int, kv_heads: int, gate: int, rotary_dim: int, variant: str = ""
) -> Arguments:
    heads = q_heads * (1 + gate) + 2 * kv_heads
    positions = torch.randint(0, POSITIONS, (T,), dtype=torch.int32)
    if T > 2:  # both ends, and one twice
        positions[:3] = torch.tensor([0, POSITIONS - 1, 0])
    return {
        "qkv_state": activations(T, heads, HEAD, variant=variant).flatten(1),
        "q_out": poison(T, q_heads * HEAD),
        "gate_out": poison(T, q_heads * HEAD),
        "k_out": poison(T, kv_heads * HEAD),
        "v_out": poison(T, kv_heads * HEAD),
        "norm_wq": rope_weight(variant),
        "norm_wk": rope_weight(variant),
        "positions": positions,
        "q_heads": q_heads,
        "kv_heads": kv_heads,
        "attn_output_gate": bool(gate),
        "rotary_dim": rotary_dim,
        "cos_sin_cache": cos_sin_cache(rotary_dim),
    }


def qkv_split_norm_rope_v(*sizes: Any) -> Arguments:
    made = qkv_split_norm_rope(*sizes)
    return {**made, "norm_wv": rope_weight(sizes[-1] if isinstance(sizes[-1], str) else "")}


# Tokens, q heads, kv heads, gate, rotary_dim.
HEADS = sizes(
    "4x8x4x1x256 5x3x2x0x256 1x1x1x0x64 3x4x2x1x64 33x2x1x1x256 2x3x1x0x128 2x2x1x1x64xfaint "
    "128x1x1x0x64 101x5x5x1x64xoutliers"
)

SIZES: Choices = {
    "esimd_qkv_split_norm_rope": (qkv_split_norm_rope, HEADS),
    "esimd_qkv_split_norm_rope_v": (qkv_split_norm_rope_v, HEADS),
}
