"""Splitting a fused projection into heads, with norm and rotary embedding. The kernels are `csrc/rope`."""

from torch import Tensor

from .derived import operator


@operator
def esimd_qkv_split_norm_rope(
    qkv_state: Tensor,
    q_out: Tensor,
    gate_out: Tensor,
    k_out: Tensor,
    v_out: Tensor,
    norm_wq: Tensor,
    norm_wk: Tensor,
    positions: Tensor,
    q_heads: int,
    kv_heads: int,
    attn_output_gate: bool,
    rotary_dim: int,
    cos_sin_cache: Tensor,
) -> None:
    """Split heads; `q_out = rope(q * inverse_rms(q) * (norm_wq + 1))`, k_out likewise, `gate_out = sigmoid(gate)`,
    v_out a copy. The epsilon is 1e-6.

    qkv_state: [T, (q_heads + 2 kv_heads) * 256] fp16, the heads of q, k, v; or [T, (2 q_heads + 2 kv_heads) * 256]
        with a gate, which follows each head of q
    q_out: [T, q_heads * 256] fp16, overwritten
    gate_out: like q_out, overwritten where there is a gate, else left alone
    k_out, v_out: [T, kv_heads * 256] fp16, overwritten
    norm_wq, norm_wk: [256] fp16; 1 is added
    positions: [T] int32, rows of the cache
    attn_output_gate: whether qkv_state holds gates
    rotary_dim: 64 or 256, elements of a head that are rotated
    cos_sin_cache: [positions, rotary_dim] fp16, cosines then sines
    """


@operator
def esimd_qkv_split_norm_rope_v(
    qkv_state: Tensor,
    q_out: Tensor,
    gate_out: Tensor,
    k_out: Tensor,
    v_out: Tensor,
    norm_wq: Tensor,
    norm_wk: Tensor,
    norm_wv: Tensor,
    positions: Tensor,
    q_heads: int,
    kv_heads: int,
    attn_output_gate: bool,
    rotary_dim: int,
    cos_sin_cache: Tensor,
) -> None:
    """As esimd_qkv_split_norm_rope with `v_out = v * inverse_rms(v) * (norm_wv + 1)`, not rotated."""
