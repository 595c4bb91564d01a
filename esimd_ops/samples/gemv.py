"""Samples of the products with weight matrices, of one token or few, without a norm in front."""

from typing import Any

from torch import Tensor

from .build import (
    Arguments,
    Choices,
    block_scales,
    fp8_matrix,
    fp16_matrix,
    int4_matrix,
    normal,
    one_scale,
    poison,
    tokens,
)


def row_scales(N: int, variant: str) -> Tensor:
    scales = normal(N, spread=0 if variant.endswith("-codes") else 0.01, centre=1.0)
    if variant == "outliers":
        scales[::3] *= -1
        scales[1::7] *= 3e-5
    return scales


def gemv_fp8_pern(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(1, K, variant),
        "weight": fp8_matrix(N, K, variant),
        "weight_scale": row_scales(N, variant),
        "output": poison(1, N),
        "N": N,
        "K": K,
    }


def gemv_fp8_pern_fused(*sizes: Any) -> Arguments:
    """Sizes N of each weight, then K, then the variant."""
    *Ns, K, variant = sizes
    arguments: Arguments = {"input": tokens(1, K, variant)}
    for i, N in enumerate(Ns):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": row_scales(N, variant)}
        arguments |= {f"o{i}": poison(1, N), f"N{i}": N}
    return {**arguments, "K": K}


def gemv_fp8_pert(T: int, N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(T, K, variant),
        "weight": fp8_matrix(N, K, variant),
        "weight_scale": one_scale(variant),
        "output": poison(T, N),
    }


def gemv_fp8_pert_fused(*sizes: Any) -> Arguments:
    """Sizes N of each weight, then K, then the variant."""
    *Ns, K, variant = sizes
    arguments: Arguments = {"input": tokens(1, K, variant)}
    for i, N in enumerate(Ns):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": one_scale(variant, i + 1), f"o{i}": poison(1, N)}
    return arguments


def gemv_fp16(T: int, N: int, K: int, variant: str = "") -> Arguments:
    return {"input": tokens(T, K, variant), "weight": fp16_matrix(N, K, variant), "output": poison(T, N)}


def gemv_fp16_gelu_mul(N: int, K: int, variant: str = "") -> Arguments:
    # Gates wide enough for the saturated ends of the activation.
    weight = fp16_matrix(2 * N, K, variant) * (K**-0.5 * (15000 if variant == "tiny" else 150))
    return {"input": tokens(1, K, variant), "weight": weight, "output": poison(1, N)}


def gemv_int4(N: int, K: int, variant: str = "") -> Arguments:
    weight, scale = int4_matrix(N, K, variant)
    return {"input": tokens(1, K, variant), "weight": weight, "weight_scale": scale, "output": poison(1, N)}


def gemv_int4_fused2(N0: int, N1: int, K: int, variant: str = "") -> Arguments:
    w0, s0 = int4_matrix(N0, K, variant)
    w1, s1 = int4_matrix(N1, K, variant)
    return {
        "input": tokens(1, K, variant),
        "w0": w0,
        "s0": s0,
        "o0": poison(1, N0),
        "w1": w1,
        "s1": s1,
        "o1": poison(1, N1),
    }


def gemm_int4_pgrp(T: int, N: int, K: int, variant: str = "") -> Arguments:
    weight, scale = int4_matrix(N, K, variant)
    return {"input": tokens(T, K, variant), "weight": weight, "weight_scale": scale, "output": poison(T, N)}


def gemm_fp8_blockscale(T: int, N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(T, K, variant),
        "weight": fp8_matrix(N, K, variant),
        "weight_scale": block_scales(N, K, variant),
        "output": poison(T, N),
        "block_n": 128,
        "block_k": 128,
    }


def gemv_fp8_blockscale_fused2(N0: int, N1: int, K: int, variant: str = "e4m3") -> Arguments:
    arguments: Arguments = {"input": tokens(1, K, variant)}
    for i, N in enumerate((N0, N1)):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": block_scales(N, K, variant), f"o{i}": poison(1, N)}
    return {**arguments, "block_n": 128, "block_k": 128}


def gemv_fp8_blockscale_fp16_fused2(N0: int, N1: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "input": tokens(1, K, variant),
        "w0": fp8_matrix(N0, K, variant),
        "s0": block_scales(N0, K, variant),
        "o0": poison(1, N0),
        "w1": fp16_matrix(N1, K, variant),
        "o1": poison(1, N1),
        "block_n": 128,
        "block_k": 128,
    }


# N around what one sub-group and one work-group take; K with and without a tail, over the size of a chunk.
FP8 = (
    (256, 2048), (1, 128), (3, 7), (65, 640), (63, 4099, "e5m2"), (600, 1152, "uint8"), (2048, 512),
    (1040, 2560, "outliers"), (330, 4608, "tiny"),
)  # fmt: skip
CODES = ((256, 128, "e4m3-codes"), (256, 256, "e5m2-codes"), (256, 1024, "e4m3-codes"))
FUSED2 = (
    (96, 32, 1024, "e4m3"), (1, 1, 128, "e5m2"), (3, 62, 2817, "e4m3"), (256, 300, 1024, "e4m3-codes"),
    (1040, 1056, 2560, "outliers"), (300, 90, 4608, "tiny"), (3, 62, 128, "uint8"),
)  # fmt: skip
FUSED3 = (
    (64, 32, 32, 1024, "e4m3"),
    (1, 1, 1, 128, "e5m2"),
    (3, 62, 65, 2817, "e4m3"),
    (256, 300, 1, 1024, "e5m2-codes"),
    (1040, 1056, 1025, 2560, "outliers"),
    (300, 90, 2, 4608, "tiny"),
    (3, 62, 5, 128, "uint8"),
)
PERT = tuple((1, *sizes) for sizes in (*FP8, *CODES))
BLOCKS = (
    (256, 96, 1024), (1, 1, 128), (130, 62, 640), (256, 257, 256, "e4m3-codes"),
    (1040, 1056, 2560, "outliers"), (300, 90, 4608, "tiny"),
)  # fmt: skip

SIZES: Choices = {
    "esimd_gemv_fp8_pern": (gemv_fp8_pern, (*FP8, *CODES)),
    "esimd_gemv_fp8_pern_fused2": (gemv_fp8_pern_fused, FUSED2),
    "esimd_gemv_fp8_pern_fused3": (gemv_fp8_pern_fused, FUSED3),
    "esimd_gemv_fp8_pert": (gemv_fp8_pert, PERT),
    "esimd_gemv_fp8_pert_fused2": (gemv_fp8_pert_fused, FUSED2),
    "esimd_gemv_fp8_pert_fused3": (gemv_fp8_pert_fused, FUSED3),
    "esimd_gemv_fp8_pert_bmg": (gemv_fp8_pert, PERT),
    "esimd_gemv_fp8_blockscale_fused2": (gemv_fp8_blockscale_fused2, BLOCKS),
    "esimd_gemv_fp8_blockscale_fp16_fused2": (gemv_fp8_blockscale_fp16_fused2, BLOCKS),
    "esimd_gemv_fp16": (
        gemv_fp16,
        (
            (1, 256, 2048),
            (1, 1, 32),
            (2, 3, 7),
            (4, 65, 640),
            (8, 63, 4099),
            (67, 48, 64),
            (128, 33, 96),
            (2, 1040, 2560, "outliers"),
            (3, 40, 4608, "tiny"),
        ),
    ),
    "esimd_gemv_fp16_gelu_mul": (
        gemv_fp16_gelu_mul,
        ((256, 2048), (1, 32), (3, 7), (65, 640), (63, 4099), (1040, 2560, "outliers"), (40, 4608, "tiny")),
    ),
    "esimd_gemv_int4": (
        gemv_int4,
        (
            (256, 2816),
            (1, 128),
            (3, 256),
            (65, 640),
            (63, 4096),
            (129, 4224),
            (16, 11008),
            (32, 512, "zeros"),
            (1040, 2560, "outliers"),
            (40, 4608, "tiny"),
        ),
    ),
    "esimd_gemv_int4_fused2": (
        gemv_int4_fused2,
        (
            (96, 32, 1024),
            (1, 1, 128),
            (3, 62, 2816),
            (64, 64, 4096),
            (2, 130, 4224),
            (1040, 1056, 2560, "outliers"),
            (40, 9, 4608, "tiny"),
        ),
    ),
    "esimd_gemm_fp8_pert": (
        gemv_fp8_pert,
        (
            (8, 64, 1024),
            (1, 65, 1152),
            (2, 1, 128),
            (7, 33, 640, "e5m2"),
            (9, 31, 1024),
            (64, 1040, 512, "e5m2"),
            (67, 48, 1289, "uint8"),
            (128, 32, 256),
            (8, 256, 256, "e4m3-codes"),
            (3, 256, 256, "e5m2-codes"),
            (4, 1040, 2560, "outliers"),
            (16, 40, 4608, "tiny"),
            (20, 40, 512),
            (32, 40, 512),
            (48, 40, 512),
        ),
    ),
    "esimd_gemm_int4_pgrp": (
        gemm_int4_pgrp,
        (
            (8, 64, 1024),
            (1, 65, 1152),
            (2, 1, 128),
            (7, 33, 640),
            (9, 31, 1024),
            (64, 16, 2816),
            (67, 48, 1280),
            (128, 32, 256),
            (4, 1040, 2560, "outliers"),
            (16, 48, 4608, "tiny"),
            (20, 48, 512),
            (32, 48, 512),
            (48, 48, 512),
        ),
    ),
    "esimd_gemm_fp8_blockscale": (
        gemm_fp8_blockscale,
        (
            (8, 64, 1024),
            (1, 65, 1152),
            (2, 1, 128),
            (12, 300, 640, "uint8"),
            (67, 129, 1280),
            (128, 33, 256),
            (1, 256, 128, "e4m3-codes"),
            (9, 256, 256, "e4m3-codes"),
            (4, 1040, 2560, "outliers"),
            (16, 40, 4608, "tiny"),
            (20, 40, 512),
            (32, 40, 512),
            (48, 40, 512),
        ),
    ),
}
