"""Samples of the products with weight matrices, of one token or few, without a norm in front."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from .build import (
    BLOCKS,
    Arguments,
    Choices,
    block_scales,
    fp8_matrix,
    fp16_matrix,
    int4_matrix,
    normal,
    one_scale,
    poison,
    sizes,
    tokens,
)


def row_scales(N: int, variant: str) -> Tensor:
    scales = normal(N, spread=0 if variant.endswith("-codes") else 0.01, centre=1.0)
    if variant == "outliers":
        scales[::3] *= -1
        scales[1::7] *= 3e-5
    return scales


def gemv_fp8_pert(T: int, N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(T, K, variant),
        "weight": fp8_matrix(N, K, variant),
        "weight_scale": one_scale(variant),
        "output": poison(T, N),
    }


def gemv_fp8_pern(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {**gemv_fp8_pert(1, N, K, variant), "weight_scale": row_scales(N, variant), "N": N, "K": K}


def gemm_fp8_blockscale(T: int, N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {**gemv_fp8_pert(T, N, K, variant), "weight_scale": block_scales(N, K, variant), **BLOCKS}


def _fused(scale: Callable[[int, int, str, int], Tensor], *sizes: Any) -> Arguments:
    """Sizes N of each weight, then K, then perhaps the variant. `scale` makes that of N, K, the variant, and which."""
    *Ns, K, variant = sizes if isinstance(sizes[-1], str) else (*sizes, "e4m3")
    arguments: Arguments = {"input": tokens(1, K, variant), "K": K, **BLOCKS}
    for i, N in enumerate(Ns):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": scale(N, K, variant, i)}
        arguments |= {f"o{i}": poison(1, N), f"N{i}": N}
    return arguments


gemv_fp8_pern_fused = partial(_fused, lambda N, _, variant, __: row_scales(N, variant))
gemv_fp8_pert_fused = partial(_fused, lambda _, __, variant, i: one_scale(variant, i + 1))
gemv_fp8_blockscale_fused2 = partial(_fused, lambda N, K, variant, _: block_scales(N, K, variant))


def gemv_fp8_blockscale_fp16_fused2(N0: int, N1: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(1, K, variant),
        "w0": fp8_matrix(N0, K, variant),
        "s0": block_scales(N0, K, variant),
        "o0": poison(1, N0),
        "w1": fp16_matrix(N1, K, variant),
        "o1": poison(1, N1),
        **BLOCKS,
    }


def gemv_fp16(T: int, N: int, K: int, variant: str = "") -> Arguments:
    return {"input": tokens(T, K, variant), "weight": fp16_matrix(N, K, variant), "output": poison(T, N)}


def gemv_fp16_gelu_mul(N: int, K: int, variant: str = "") -> Arguments:
    # Gates wide enough for the saturated ends of the activation.
    weight = fp16_matrix(2 * N, K, variant) * (K**-0.5 * (15000 if variant == "tiny" else 150))
    return {"input": tokens(1, K, variant), "weight": weight, "output": poison(1, N)}


def gemm_int4_pgrp(T: int, N: int, K: int, variant: str = "") -> Arguments:
    weight, scale = int4_matrix(N, K, variant)
    return {"input": tokens(T, K, variant), "weight": weight, "weight_scale": scale, "output": poison(T, N)}


def gemv_int4_fused2(N0: int, N1: int, K: int, variant: str = "") -> Arguments:
    (w0, s0), (w1, s1) = int4_matrix(N0, K, variant), int4_matrix(N1, K, variant)
    outputs = {"o0": poison(1, N0), "o1": poison(1, N1)}
    return {"input": tokens(1, K, variant), "w0": w0, "s0": s0, "w1": w1, "s1": s1, **outputs}


# N around what one sub-group and one work-group take; K with and without a tail, over the size of a chunk.
FP8 = sizes("256x2048 1x128 3x7 65x640 63x4099xe5m2 600x1152xuint8 2048x512 1040x2560xoutliers 330x4608xtiny")
CODES = sizes("256x128xe4m3-codes 256x256xe5m2-codes 256x1024xe4m3-codes")
FUSED2 = sizes(
    "96x32x1024xe4m3 1x1x128xe5m2 3x62x2817xe4m3 256x300x1024xe4m3-codes 1040x1056x2560xoutliers "
    "300x90x4608xtiny 3x62x128xuint8"
)
FUSED3 = sizes(
    "64x32x32x1024xe4m3 1x1x1x128xe5m2 3x62x65x2817xe4m3 256x300x1x1024xe5m2-codes "
    "1040x1056x1025x2560xoutliers 300x90x2x4608xtiny 3x62x5x128xuint8"
)
PERT = tuple((1, *each) for each in (*FP8, *CODES))
BLOCKED = sizes("256x96x1024 1x1x128 130x62x640 256x257x256xe4m3-codes 1040x1056x2560xoutliers 300x90x4608xtiny")

SIZES: Choices = {
    "esimd_gemv_fp8_pern": (gemv_fp8_pern, (*FP8, *CODES)),
    "esimd_gemv_fp8_pern_fused2": (gemv_fp8_pern_fused, FUSED2),
    "esimd_gemv_fp8_pern_fused3": (gemv_fp8_pern_fused, FUSED3),
    "esimd_gemv_fp8_pert": (gemv_fp8_pert, PERT),
    "esimd_gemv_fp8_pert_fused2": (gemv_fp8_pert_fused, FUSED2),
    "esimd_gemv_fp8_pert_fused3": (gemv_fp8_pert_fused, FUSED3),
    "esimd_gemv_fp8_pert_bmg": (gemv_fp8_pert, PERT),
    "esimd_gemv_fp8_blockscale_fused2": (gemv_fp8_blockscale_fused2, BLOCKED),
    "esimd_gemv_fp8_blockscale_fp16_fused2": (gemv_fp8_blockscale_fp16_fused2, BLOCKED),
    "esimd_gemv_fp16": (
        gemv_fp16,
        sizes("1x256x2048 1x1x32 2x3x7 4x65x640 8x63x4099 67x48x64 128x33x96 2x1040x2560xoutliers 3x40x4608xtiny"),
    ),
    "esimd_gemv_fp16_gelu_mul": (
        gemv_fp16_gelu_mul,
        sizes("256x2048 1x32 3x7 65x640 63x4099 1040x2560xoutliers 40x4608xtiny"),
    ),
    "esimd_gemv_int4": (
        partial(gemm_int4_pgrp, 1),
        sizes("256x2816 1x128 3x256 65x640 63x4096 129x4224 16x11008 32x512xzeros 1040x2560xoutliers 40x4608xtiny"),
    ),
    "esimd_gemv_int4_fused2": (
        gemv_int4_fused2,
        sizes("96x32x1024 1x1x128 3x62x2816 64x64x4096 2x130x4224 1040x1056x2560xoutliers 40x9x4608xtiny"),
    ),
    "esimd_gemm_fp8_pert": (
        gemv_fp8_pert,
        sizes(
            "8x64x1024 1x65x1152 2x1x128 7x33x640xe5m2 9x31x1024 64x1040x512xe5m2 67x48x1289xuint8 128x32x256 "
            "8x256x256xe4m3-codes 3x256x256xe5m2-codes 4x1040x2560xoutliers 16x40x4608xtiny 20x40x512 "
            "32x40x512 48x40x512"
        ),
    ),
    "esimd_gemm_int4_pgrp": (
        gemm_int4_pgrp,
        sizes(
            "8x64x1024 1x65x1152 2x1x128 7x33x640 9x31x1024 64x16x2816 67x48x1280 128x32x256 "
            "4x1040x2560xoutliers 16x48x4608xtiny 20x48x512 32x48x512 48x48x512"
        ),
    ),
    "esimd_gemm_fp8_blockscale": (
        gemm_fp8_blockscale,
        sizes(
            "8x64x1024 1x65x1152 2x1x128 12x300x640xuint8 67x129x1280 128x33x256 1x256x128xe4m3-codes "
            "9x256x256xe4m3-codes 4x1040x2560xoutliers 16x40x4608xtiny 20x40x512 32x40x512 48x40x512"
        ),
    ),
}
