"""Few tokens times quantised weight matrices. The kernels are `csrc/gemm`."""

from torch import Tensor

from .derived import operator


@operator
def esimd_gemm_fp8_pert(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """`output = weight_scale * (input @ weight.T)`, every E4M3 code exact.

    input: [T, K] fp16
    weight: [N, K] fp8 (float8_e4m3fn, float8_e5m2, or uint8 holding E4M3 bits)
    weight_scale: one fp32, [] or [1]
    output: [T, N] fp16, overwritten
    """


@operator
def esimd_gemm_int4_pgrp(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """`output = input @ W.T` with `W[n, k] = half((u - 8) * weight_scale[n, k // 128])`.

    input: [T, K] fp16, K a multiple of 128
    weight: [N, K/2] uint8, two nibbles u a byte, the low one first
    weight_scale: [N, K/128] fp16
    output: [T, N] fp16, overwritten
    """


@operator
def esimd_gemm_fp8_blockscale(
    input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, block_n: int, block_k: int
) -> Tensor:
    """`output = input @ (weight * weight_scale).T`, one scale for 128 x 128 weights, every code exact.

    input: [T, K] fp16, K a multiple of 128
    weight: [N, K] float8_e4m3fn, or uint8 holding such bits
    weight_scale: [ceil(N/128), K/128] fp32
    output: [T, N] fp16, overwritten
    block_n, block_k: 128
    """
