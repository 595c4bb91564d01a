"""The plain PyTorch meaning of each operator, from its published contract; no device code, no knowledge of kernels.

Every function takes its operator's arguments in order and returns the expected value of each argument that the operator
writes, by name. Arguments are only read, so an in-place operand means its value before the call. All arithmetic is in
`compute` (fp32, as the operators do it); `half(...)` marks the roundings that are part of the contract. With
`compute=torch.float64` the same text is the truth that kernels are judged by, with `torch.float16` it is PyTorch's own
half-precision answer.

Shapes: T rows of K elements, N outputs. All tensors are fp16 unless said otherwise.
"""

# ruff: noqa: ARG001  an output is an argument, though its old contents mean nothing
import torch
from torch import Tensor
from torch.nn.functional import silu

Expected = dict[str, Tensor]


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """`1 / sqrt(mean(x^2) + eps)` over the last dimension, kept."""
    return torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)


def int4_weight(packed: Tensor, scale: Tensor, compute: torch.dtype) -> Tensor:
    """[N, K/2] uint8 nibbles and [N, K/128] fp16 scales -> [N, K] of `(u - 8) * scale`; low nibble first."""
    nibbles = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
    return (nibbles.to(compute) - 8) * scale.to(compute).repeat_interleave(128, -1)


def _add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, scalar: float, compute: torch.dtype
) -> Expected:
    total = (hidden_states.to(compute) + residual.to(compute)) * scalar
    stored = total.half()
    # The mean is of the unrounded sum; what is normalised is the stored one.
    hidden = stored.to(compute) * inverse_rms(total, eps) * weight.to(compute)
    return {"hidden_states": hidden.half(), "residual": stored}


def _norm_add_norm(
    h2: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, eps1: float, eps2: float, compute: torch.dtype
) -> Expected:
    total = h2 * inverse_rms(h2, eps1) * w1.to(compute) + h1.to(compute)
    stored = total.half()
    out = stored.to(compute) * inverse_rms(total, eps2) * w2.to(compute)
    return {"h1": stored, "out": out.half()}


def esimd_rms_norm(
    input: Tensor, output: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input, output [..., K], weight [K]: `output = input * inverse_rms(input) * weight`, every row."""
    x = input.to(compute)
    return {"output": (x * inverse_rms(x, eps) * weight.to(compute)).half()}


def esimd_fused_add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """hidden_states, residual [..., K], weight [K]: `a = hidden_states + residual`, which is the new residual;
    `hidden_states = half(a) * inverse_rms(a) * weight`, every row."""
    return _add_rms_norm(hidden_states, residual, weight, eps, 1.0, compute)


def esimd_fused_scaled_add_rms_norm(
    hidden_states: Tensor,
    residual: Tensor,
    weight: Tensor,
    eps: float,
    scalar: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_fused_add_rms_norm with `a = (hidden_states + residual) * scalar`."""
    return _add_rms_norm(hidden_states, residual, weight, eps, scalar, compute)


def esimd_fused_add_rms_norm_batched(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """As esimd_fused_add_rms_norm."""
    return _add_rms_norm(hidden_states, residual, weight, eps, 1.0, compute)


def esimd_rms_norm_gated(
    x: Tensor, z: Tensor, weight: Tensor, output: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """x, z, output [..., V], weight [V]: `output = x * inverse_rms(x) * weight * silu(z)`."""
    wide = x.to(compute)
    return {"output": (wide * inverse_rms(wide, eps) * weight.to(compute) * silu(z.to(compute))).half()}


def esimd_norm_add_norm(
    h2_raw: Tensor,
    h1: Tensor,
    w1: Tensor,
    w2: Tensor,
    out: Tensor,
    eps1: float,
    eps2: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """h2_raw, h1, out [..., K], w1, w2 [K]: `t = h2_raw * inverse_rms(h2_raw, eps1) * w1 + h1`, which is the new h1;
    `out = half(t) * inverse_rms(t, eps2) * w2`."""
    return _norm_add_norm(h2_raw.to(compute), h1, w1, w2, eps1, eps2, compute)


def esimd_accum_norm_add_norm(
    routed_output: Tensor,
    h1: Tensor,
    w1: Tensor,
    w2: Tensor,
    out: Tensor,
    top_k: int,
    eps1: float,
    eps2: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """routed_output [>= top_k, K], h1, out [1, K]: as esimd_norm_add_norm with h2 = the sum of the first top_k rows."""
    h2 = routed_output.flatten(0, -2)[:top_k].to(compute).sum(0).reshape(h1.shape)
    return _norm_add_norm(h2, h1, w1, w2, eps1, eps2, compute)


def esimd_norm_gemv_norm_fp16(
    residual: Tensor,
    scale_with_root: Tensor,
    proj_w: Tensor,
    pre_ff_w: Tensor,
    router_logits: Tensor,
    moe_input: Tensor,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """residual, moe_input [1, K], scale_with_root, pre_ff_w [K], proj_w [N, K], router_logits [1, N]:
    `c = residual * inverse_rms(residual)`, `moe_input = c * pre_ff_w` and
    `router_logits = (c * scale_with_root) @ proj_w.T`."""
    c = residual.to(compute)
    c = c * inverse_rms(c, eps)
    logits = (c * scale_with_root.to(compute)) @ proj_w.to(compute).T
    return {"router_logits": logits.half(), "moe_input": (c * pre_ff_w.to(compute)).half()}


def esimd_gemv_int4(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [1, K], weight [N, K/2] uint8, weight_scale [N, K/128], output [1, N]: `output = input @ W.T`."""
    return {"output": (input.to(compute) @ int4_weight(weight, weight_scale, compute).T).half()}


def esimd_gemv_int4_fused2(
    input: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """esimd_gemv_int4 of (w0, s0, o0) and of (w1, s1, o1), with one input."""
    return {
        "o0": esimd_gemv_int4(input, w0, s0, o0, compute=compute)["output"],
        "o1": esimd_gemv_int4(input, w1, s1, o1, compute=compute)["output"],
    }


def esimd_gemm_int4_pgrp(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [T, K], output [T, N], weight as esimd_gemv_int4 but each weight rounded to half before it is used."""
    rounded = int4_weight(weight, weight_scale, torch.float32).half()
    return {"output": (input.to(compute) @ rounded.to(compute).T).half()}
