"""Splitting a fused projection into heads, with norm and rotary embedding.

Heads have 256 elements. The norm's epsilon is 1e-6 and 1 is added to its weight, both fixed by the operator.
"""

import torch
from torch import Tensor

from .parts import Expected, inverse_rms, kept, rounded, terms

HEAD = 256
EPS = 1e-6


def _norm(heads: Tensor, weight: Tensor, compute: torch.dtype) -> Tensor:
    return heads * (weight.to(compute) + 1) * inverse_rms(heads, EPS)


def _rotate(heads: Tensor, cos_sin: Tensor) -> Tensor:
    """NeoX style: [T, heads, 256] and [T, rotary_dim], cosines then sines; elements past rotary_dim stay."""
    rotary_dim = cos_sin.shape[-1]
    cos, sin = cos_sin[:, None].chunk(2, -1)
    first, second, rest = heads.split((rotary_dim // 2, rotary_dim // 2, HEAD - rotary_dim), -1)
    turned = (terms(first * cos) + terms(-second * sin), terms(second * cos) + terms(first * sin))
    return torch.cat((*turned, rest), -1)


def esimd_qkv_split_norm_rope(
    qkv_state: Tensor,
    gate_out: Tensor,
    norm_wq: Tensor,
    norm_wk: Tensor,
    positions: Tensor,
    q_heads: int,
    kv_heads: int,
    attn_output_gate: bool,
    rotary_dim: int,
    cos_sin_cache: Tensor,
    norm_wv: Tensor | None = None,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """qkv_state [T, heads * 256], q_out, gate_out [T, q_heads * 256], k_out, v_out [T, kv_heads * 256], norm_wq,
    norm_wk [256], positions [T] int32, cos_sin_cache [positions, rotary_dim].

    The heads of qkv_state are q, k, v, each q followed by its gate where attn_output_gate is set.
    `q_out = rope(q * inverse_rms(q) * (norm_wq + 1))`, k_out likewise, `gate_out = sigmoid(gate)`, v_out a copy of v.
    Without a gate, gate_out keeps what it holds. With norm_wv [256] `v_out = v * inverse_rms(v) * (norm_wv + 1)`, not
    rotated.
    """
    heads = qkv_state.unflatten(-1, (-1, HEAD))
    q_and_gate, k, v = heads.split((q_heads * (2 if attn_output_gate else 1), kv_heads, kv_heads), 1)
    gate = kept(gate_out, compute)
    if attn_output_gate:  # each head of q is followed by its gate
        gate = rounded(torch.sigmoid(q_and_gate[:, 1::2].to(compute))).flatten(1).reshape(gate_out.shape)
        q_and_gate = q_and_gate[:, ::2]
    cos_sin = cos_sin_cache[positions.long(), :rotary_dim].to(compute)
    q = rounded(_rotate(_norm(q_and_gate.to(compute), norm_wq, compute), cos_sin))
    k = rounded(_rotate(_norm(k.to(compute), norm_wk, compute), cos_sin))
    if norm_wv is not None:
        v = rounded(_norm(v.to(compute), norm_wv, compute))
    return {"q_out": q.flatten(1), "gate_out": gate, "k_out": k.flatten(1), "v_out": v.flatten(1)}


esimd_qkv_split_norm_rope_v = esimd_qkv_split_norm_rope
