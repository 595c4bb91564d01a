"""RMSNorm, alone and with the additions around it. Weights are used as they are, without +1."""

import torch
from torch import Tensor

from .parts import Expected, inverse_rms, rounded, silu, terms


def _add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, scalar: float, compute: torch.dtype
) -> Expected:
    total = (terms(hidden_states.to(compute)) + terms(residual.to(compute))) * scalar
    stored = total.half()
    # The mean is of the unrounded sum; what is normalised is the stored one.
    hidden = stored.to(compute) * inverse_rms(total, eps) * weight.to(compute)
    return {"hidden_states": rounded(hidden), "residual": rounded(total)}


def _norm_add_norm(
    h2: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, eps1: float, eps2: float, compute: torch.dtype
) -> Expected:
    total = terms(h2 * inverse_rms(h2, eps1) * w1.to(compute)) + terms(h1.to(compute))
    stored = total.half()
    out = stored.to(compute) * inverse_rms(total, eps2) * w2.to(compute)
    return {"h1": rounded(total), "out": rounded(out)}


def esimd_rms_norm(input: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32) -> Expected:
    """input, output [..., K], weight [K]: `output = input * inverse_rms(input) * weight`, every row."""
    x = input.to(compute)
    return {"output": rounded(x * inverse_rms(x, eps) * weight.to(compute))}


def esimd_fused_add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """hidden_states, residual [..., K], weight [K]: `a = hidden_states + residual`, which is the new residual;
    `hidden_states = half(a) * inverse_rms(a) * weight`, every row."""
    return _add_rms_norm(hidden_states, residual, weight, eps, 1.0, compute)


esimd_fused_add_rms_norm_batched = esimd_fused_add_rms_norm


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


def esimd_rms_norm_gated(
    x: Tensor, z: Tensor, weight: Tensor, eps: float, *, compute: torch.dtype = torch.float32
) -> Expected:
    """x, z, output [..., V], weight [V]: `output = x * inverse_rms(x) * weight * silu(z)`."""
    wide = x.to(compute)
    return {"output": rounded(wide * inverse_rms(wide, eps) * weight.to(compute) * silu(z.to(compute)))}


def esimd_norm_add_norm(
    h2_raw: Tensor,
    h1: Tensor,
    w1: Tensor,
    w2: Tensor,
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
    top_k: int,
    eps1: float,
    eps2: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """routed_output [>= top_k, K], h1, out [1, K]: as esimd_norm_add_norm with h2 = the sum of the first top_k rows."""
    h2 = routed_output.flatten(0, -2)[:top_k].to(compute)
    h2 = terms(h2).sum(0).reshape(h1.shape)
    return _norm_add_norm(h2, h1, w1, w2, eps1, eps2, compute)
