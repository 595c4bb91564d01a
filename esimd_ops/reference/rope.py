"""Splitting a fused projection into heads, with norm and rotary embedding.

Heads have 256 elements. The norm's epsilon is 1e-6 and 1 is added to its weight, both fixed by the operator.
"""

import torch
from torch import Tensor

from .parts import CallArguments, Tensors, inverse_rms, kept, rounded, terms

HEAD = 256
EPS = 1e-6


def _norm(heads: Tensor, weight: Tensor, compute: torch.dtype) -> Tensor:
    heads = heads.to(compute)
    return heads * (weight.to(compute) + 1) * inverse_rms(heads, EPS)


def _rotate(heads: Tensor, cos_sin: Tensor) -> Tensor:
    """NeoX style: [T, heads, 256] and [T, rotary_dim], cosines then sines; elements past rotary_dim stay."""
    rotary_dim = cos_sin.shape[-1]
    cos, sin = cos_sin[:, None].chunk(2, -1)
    first, second, rest = heads.split((rotary_dim // 2, rotary_dim // 2, HEAD - rotary_dim), -1)
    turned = (terms(first * cos) + terms(-second * sin), terms(second * cos) + terms(first * sin))
    return torch.cat((*turned, rest), -1)


def esimd_qkv_split_norm_rope(call: CallArguments) -> Tensors:
    """The heads of qkv_state are q, k, v, each q followed by its gate where attn_output_gate is set."""
    gated = call.attn_output_gate
    heads = call.qkv_state.unflatten(-1, (-1, HEAD))
    q, k, v = heads.split((call.q_heads * (2 if gated else 1), call.kv_heads, call.kv_heads), 1)
    gate = kept(call.gate_out, call.compute)
    if gated:
        gate = rounded(torch.sigmoid(q[:, 1::2].to(call.compute))).flatten(1).reshape(gate.shape)
        q = q[:, ::2]
    cos_sin = call.cos_sin_cache[call.positions.long(), : call.rotary_dim].to(call.compute)
    q = rounded(_rotate(_norm(q, call.norm_wq, call.compute), cos_sin))
    k = rounded(_rotate(_norm(k, call.norm_wk, call.compute), cos_sin))
    return {"q_out": q.flatten(1), "gate_out": gate, "k_out": k.flatten(1), "v_out": v.flatten(1)}


def esimd_qkv_split_norm_rope_v(call: CallArguments) -> Tensors:
    done = esimd_qkv_split_norm_rope(call)
    v = done["v_out"].unflatten(-1, (-1, HEAD))
    return {**done, "v_out": rounded(_norm(v, call.norm_wv, call.compute)).flatten(1)}
