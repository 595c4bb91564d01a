"""Few tokens times quantised weight matrices. The kernels are `csrc/gemm`."""

from torch import Tensor

from .derived import operator


@operator
def esimd_gemm_fp8_pert(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """As esimd_gemv_fp8_pert for T rows of input and output, every E4M3 code exact."""


@operator
def esimd_gemm_int4_pgrp(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """As esimd_gemv_int4 for T rows of input and output, each weight rounded to half before it is used."""


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
