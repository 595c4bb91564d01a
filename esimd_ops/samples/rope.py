"""Samples of the operators that split a fused projection into heads."""

import torch

from .build import Arguments, Choices, activations, norm_weight, poison

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


def qkv_split_norm_rope_v(
    T: int, q_heads: int, kv_heads: int, gate: int, rotary_dim: int, variant: str = ""
) -> Arguments:
    arguments = {}
    for name, value in qkv_split_norm_rope(T, q_heads, kv_heads, gate, rotary_dim, variant).items():
        arguments[name] = value
        if name == "norm_wk":
            arguments["norm_wv"] = rope_weight(variant)
    return arguments


# Tokens, q heads, kv heads, gate, rotary_dim.
HEADS = (
    (4, 8, 4, 1, 256),
    (5, 3, 2, 0, 256),
    (1, 1, 1, 0, 64),
    (3, 4, 2, 1, 64),
    (33, 2, 1, 1, 256),
    (2, 3, 1, 0, 128),
    (2, 2, 1, 1, 64, "faint"),
    (128, 1, 1, 0, 64),
    (101, 5, 5, 1, 64, "outliers"),
)

SIZES: Choices = {
    "esimd_qkv_split_norm_rope": (qkv_split_norm_rope, HEADS),
    "esimd_qkv_split_norm_rope_v": (qkv_split_norm_rope_v, HEADS),
}
