"""Products of few tokens with quantised weight matrices."""

import torch
from torch import Tensor

from .parts import Decoder, Expected, block_weight, fp8, int4_weight, product


def esimd_gemm_fp8_pert(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [T, K], weight [N, K] fp8, weight_scale one fp32, output [T, N]: `output = weight_scale * (input @
    weight.T)`.

    Every E4M3 code is exact. The original library reads subnormal codes as zero for one token, for N <= 16, for T > 64
    and where K is no multiple of 64, and exactly elsewhere.
    """
    wide = fp8(weight, Decoder.EXACT, compute)
    return {"output": product(input.to(compute), wide, output, weight_scale.to(compute).reshape(()))}


def esimd_gemm_int4_pgrp(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [T, K], output [T, N], weight as esimd_gemv_int4 but each weight rounded to half before it is used."""
    rounded = int4_weight(weight, weight_scale, torch.float32).half()
    return {"output": product(input.to(compute), rounded.to(compute), output)}


def esimd_gemm_fp8_blockscale(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, *, compute: torch.dtype = torch.float32
) -> Expected:
    """input [T, K], weight [N, K] E4M3, weight_scale [ceil(N/128), K/128] fp32, output [T, N]: `output = input @
    (weight * weight_scale).T`, one scale for 128 x 128 weights, every code exact."""
    return {"output": product(input.to(compute), block_weight(weight, weight_scale, compute), output)}
