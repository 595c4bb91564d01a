"""Products of one normalised token with weight matrices: the norm is fused in front.

The normalised token is used unrounded; where it is stored too, the stored copy is a by-product.
"""

import torch
from torch import Tensor

from .parts import Decoder, Expected, block_weight, fp8, int4_weight, inverse_rms, product, rounded, silu, terms


def _sum_and_norm(
    hidden_states: Tensor, residual: Tensor, norm_weight: Tensor, eps: float, scalar: float, compute: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The new residual, and the normalised sum."""
    total = (hidden_states.to(compute) + residual.to(compute)) * scalar
    return rounded(total), total * inverse_rms(total, eps) * norm_weight.to(compute)


def _gated(x: Tensor, z: Tensor, norm_weight: Tensor, HV: int, V: int, eps: float, compute: torch.dtype) -> Tensor:
    """[1, HV * V]: each head of V elements has a norm of its own, and all heads one weight."""
    wide = x.to(compute).reshape(HV, V)
    gate = silu(z.to(compute).reshape(HV, V))
    return (wide * inverse_rms(wide, eps) * norm_weight.to(compute).reshape(V) * gate).reshape(1, HV * V)


def esimd_resadd_norm_gemv_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """hidden_states, residual, normed_out [1, K], norm_weight [K], gemv_weight [N, K] fp8, gemv_scale one fp32, output
    [1, N]: `a = hidden_states + residual`, which is the new residual; `y = a * inverse_rms(a) * norm_weight`, which is
    normed_out; `output = gemv_scale * (y @ gemv_weight.T)`, subnormal codes read as zero."""
    stored, y = _sum_and_norm(hidden_states, residual, norm_weight, eps, 1.0, compute)
    weight = fp8(gemv_weight, Decoder.FLUSH, compute)
    return {
        "residual": stored,
        "output": product(y, weight, output, gemv_scale.to(compute).reshape(())),
        "normed_out": rounded(y),
    }


def esimd_resadd_norm_gemv_int4_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_resadd_norm_gemv_fp8_pert with gemv_weight [N, K/8] int32 nibbles and gemv_scale [N, K/128]."""
    stored, y = _sum_and_norm(hidden_states, residual, norm_weight, eps, 1.0, compute)
    output = product(y, int4_weight(gemv_weight, gemv_scale, compute), output)
    return {"residual": stored, "output": output, "normed_out": rounded(y)}


def esimd_resadd_norm_gemv2_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """The products of esimd_resadd_norm_gemv_fp8_pert for (w0, s0, o0) and (w1, s1, o1); the sum is not stored."""
    _, y = _sum_and_norm(hidden_states, residual, norm_weight, eps, 1.0, compute)
    return {
        "o0": product(y, fp8(w0, Decoder.FLUSH, compute), o0, s0.to(compute).reshape(())),
        "o1": product(y, fp8(w1, Decoder.FLUSH, compute), o1, s1.to(compute).reshape(())),
    }


def esimd_scaled_resadd_norm_gemv_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    qkv_weight: Tensor,
    qkv_scale: Tensor,
    qkv_out: Tensor,
    eps: float,
    scalar: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_resadd_norm_gemv_fp8_pert with `a = (hidden_states + residual) * scalar`, and no copy of y.

    The contract leaves open whether y is made of a or of the stored half(a); here it is a.
    """
    stored, y = _sum_and_norm(hidden_states, residual, norm_weight, eps, scalar, compute)
    weight = fp8(qkv_weight, Decoder.FLUSH, compute)
    return {"residual": stored, "qkv_out": product(y, weight, qkv_out, qkv_scale.to(compute).reshape(()))}


def esimd_norm_gemv_fp8_pert(
    x: Tensor,
    z: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    HV: int,
    V: int,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """x, z [HV, V], norm_weight [V], gemv_weight [N, HV * V] fp8, gemv_scale one fp32, output of N elements:
    `y = x * inverse_rms(x) * norm_weight * silu(z)` for each head, `output = gemv_scale * (y.flatten() @
    gemv_weight.T)`, every E4M3 code exact."""
    y = _gated(x, z, norm_weight, HV, V, eps, compute)
    weight = fp8(gemv_weight, Decoder.EXACT, compute)
    return {"output": product(y, weight, output, gemv_scale.to(compute).reshape(()))}


def esimd_norm_gemv_int4_pert(
    x: Tensor,
    z: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    HV: int,
    V: int,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_norm_gemv_fp8_pert with gemv_weight [N, HV * V / 8] int32 nibbles and gemv_scale [N, HV * V / 128]."""
    y = _gated(x, z, norm_weight, HV, V, eps, compute)
    return {"output": product(y, int4_weight(gemv_weight, gemv_scale, compute), output)}


def esimd_norm_gemv_fp8_blockscale(
    x: Tensor,
    z: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    HV: int,
    V: int,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """As esimd_norm_gemv_fp8_pert with gemv_scale [ceil(N/128), HV * V / 128] fp32, one for 128 x 128 weights."""
    y = _gated(x, z, norm_weight, HV, V, eps, compute)
    return {"output": product(y, block_weight(gemv_weight, gemv_scale, compute), output)}


def esimd_norm_gemv_norm_fp16(
    residual: Tensor,
    scale_with_root: Tensor,
    proj_w: Tensor,
    pre_ff_w: Tensor,
    eps: float,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """residual, moe_input [1, K], scale_with_root, pre_ff_w [K], proj_w [N, K], router_logits [1, N]:
    `c = residual * inverse_rms(residual)`, `moe_input = c * pre_ff_w` and
    `router_logits = (c * scale_with_root) @ proj_w.T`."""
    c = residual.to(compute)
    c = c * inverse_rms(c, eps)
    logits = terms(c * scale_with_root.to(compute)) @ terms(proj_w.to(compute)).T
    return {"router_logits": rounded(logits), "moe_input": rounded(c * pre_ff_w.to(compute))}
