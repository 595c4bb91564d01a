"""Products of one token with weight matrices, fused side by side.

One token of K elements, weights [N, K], outputs of N elements. Sums are of unrounded products; each output is rounded
once.
"""

import torch
from torch import Tensor

from .parts import Decoder, Expected, block_weight, fp8, gelu_tanh, int4_weight, product, rounded, terms


def _fp8_gemv(
    input: Tensor, weight: Tensor, scale: Tensor, output: Tensor, compute: torch.dtype, decoder: Decoder = Decoder.FLUSH
) -> Tensor:
    """`scale` is one number, or one a row of the weight."""
    row = scale.to(compute).reshape(-1) if scale.numel() > 1 else scale.to(compute).reshape(())
    return product(input.to(compute), fp8(weight, decoder, compute), output, row)


def esimd_gemv_fp8_pern(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [1, K], weight [N, K] fp8, weight_scale [N], output [1, N]: `output = weight_scale * (input @ weight.T)`,
    subnormal codes read as zero."""
    return {"output": _fp8_gemv(input, weight, weight_scale, output, compute)}


# With one fp32 weight_scale for the whole weight.
esimd_gemv_fp8_pert = esimd_gemv_fp8_pert_bmg = esimd_gemv_fp8_pern


def esimd_gemv_fp8_pern_fused2(
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
    """esimd_gemv_fp8_pern of each (w, s, o), with one input."""
    return {"o0": _fp8_gemv(input, w0, s0, o0, compute), "o1": _fp8_gemv(input, w1, s1, o1, compute)}


esimd_gemv_fp8_pert_fused2 = esimd_gemv_fp8_pern_fused2


def esimd_gemv_fp8_pern_fused3(
    input: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    w2: Tensor,
    s2: Tensor,
    o2: Tensor,
    *,
    compute: torch.dtype = torch.float32,
) -> Expected:
    """esimd_gemv_fp8_pern of each (w, s, o), with one input."""
    return {
        "o0": _fp8_gemv(input, w0, s0, o0, compute),
        "o1": _fp8_gemv(input, w1, s1, o1, compute),
        "o2": _fp8_gemv(input, w2, s2, o2, compute),
    }


esimd_gemv_fp8_pert_fused3 = esimd_gemv_fp8_pern_fused3


def esimd_gemv_fp8_blockscale_fused2(
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
    """input [1, K], w [N, K] E4M3, s [ceil(N/128), K/128] fp32, o [1, N]: `o = input @ (w * s).T` for both, every code
    exact."""
    x = input.to(compute)
    return {"o0": product(x, block_weight(w0, s0, compute), o0), "o1": product(x, block_weight(w1, s1, compute), o1)}


def esimd_gemv_fp8_blockscale_fp16_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, w1: Tensor, o1: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """As esimd_gemv_fp8_blockscale_fused2 with a plain fp16 second weight, which has no scale."""
    x = input.to(compute)
    return {"o0": product(x, block_weight(w0, s0, compute), o0), "o1": product(x, w1.to(compute), o1)}


def esimd_gemv_fp16(input: Tensor, weight: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32) -> Expected:
    """input [T, K], weight [N, K], output [T, N]: `output = input @ weight.T`."""
    return {"output": product(input.to(compute), weight.to(compute), output)}


def esimd_gemv_fp16_gelu_mul(input: Tensor, weight: Tensor, *, compute: torch.dtype = torch.float32) -> Expected:
    """input [1, K], weight [2N, K], output [1, N]: `output = gelu_tanh(gate) * up`, where gate is input @ the first N
    rows of the weight, up input @ the others, both unrounded."""
    gate, up = (terms(input.to(compute)) @ terms(weight.to(compute)).T).chunk(2, -1)
    return {"output": rounded(gelu_tanh(gate) * up)}


def esimd_gemv_int4(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [1, K], weight [N, K/2] uint8, weight_scale [N, K/128], output [1, N]: `output = input @ W.T`."""
    return {"output": product(input.to(compute), int4_weight(weight, weight_scale, compute), output)}


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
