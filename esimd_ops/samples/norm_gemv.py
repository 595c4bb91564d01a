"""Samples of the products with a norm in front."""

import torch

from .build import (
    Arguments,
    Choices,
    activations,
    block_scales,
    epsilon,
    fp8_matrix,
    fp16_matrix,
    int4_matrix,
    norm_weight,
    one_scale,
    poison,
    sizes,
)

V = 128  # elements of a head


def added(K: int, variant: str) -> Arguments:
    return {
        "hidden_states": activations(1, K, variant=variant),
        "residual": activations(1, K, variant=variant),
        "norm_weight": norm_weight(K, variant),
        "eps": epsilon(variant),
    }


def resadd_norm_gemv_fp8_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        **added(K, variant),
        "gemv_weight": fp8_matrix(N, K, variant),
        "gemv_scale": one_scale(variant),
        "output": poison(1, N),
        "normed_out": poison(1, K),
    }


def resadd_norm_gemv_int4_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    weight, scale = int4_matrix(N, K, variant)
    packed = {"gemv_weight": weight.view(torch.int32), "gemv_scale": scale}
    return {**resadd_norm_gemv_fp8_pert(N, K, variant), **packed}


def resadd_norm_gemv2_fp8_pert(N0: int, N1: int, K: int, variant: str = "e4m3") -> Arguments:
    arguments = added(K, variant)
    for i, N in enumerate((N0, N1)):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": one_scale(variant, i + 1), f"o{i}": poison(1, N)}
    return arguments


def scaled_resadd_norm_gemv_fp8_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        **added(K, variant),
        "qkv_weight": fp8_matrix(N, K, variant),
        "qkv_scale": one_scale(variant),
        "qkv_out": poison(1, N),
        "scalar": 1.37 if variant == "faint-other" else 0.82,
    }


def gated(HV: int, variant: str) -> Arguments:
    x = activations(HV, V, variant=variant)
    z = activations(HV, V, variant="" if variant.startswith("faint") else variant, spread=3.0)
    if variant == "zeros":
        x[0], z[-1] = 0, 0
    return {"x": x, "z": z, "norm_weight": norm_weight(V, variant)}


def norm_gemv_fp8_pert(N: int, HV: int, variant: str = "e4m3") -> Arguments:
    return {
        **gated(HV, variant),
        "gemv_weight": fp8_matrix(N, HV * V, variant),
        "gemv_scale": one_scale(variant),
        "output": poison(1, N),
        "HV": HV,
        "V": V,
        "eps": epsilon(variant),
    }


def norm_gemv_int4_pert(N: int, HV: int, variant: str = "") -> Arguments:
    weight, scale = int4_matrix(N, HV * V, variant)
    packed = {"gemv_weight": weight.view(torch.int32), "gemv_scale": scale}
    return {**norm_gemv_fp8_pert(N, HV, variant), **packed}


def norm_gemv_fp8_blockscale(N: int, HV: int, variant: str = "e4m3") -> Arguments:
    return {**norm_gemv_fp8_pert(N, HV, variant), "gemv_scale": block_scales(N, HV * V, variant)}


def norm_gemv_norm_fp16(N: int, K: int, variant: str = "") -> Arguments:
    return {
        "residual": activations(1, K, variant=variant),
        "scale_with_root": norm_weight(K, variant),
        "proj_w": fp16_matrix(N, K, variant),
        "pre_ff_w": norm_weight(K, variant),
        "router_logits": poison(1, N),
        "moe_input": poison(1, K),
        "eps": epsilon(variant),
    }


# N far past the number of groups that run at once: a late group must not see what an early one stored. K up to the
# hidden size of a dense model.
VALUES = sizes("40x512xfaint 40x512xfaint-other 1040x2560xoutliers")
RESADD = (*sizes("256x2048 1x512 3x7 65x640xe5m2 16411x512 63x4099 2048x2048 24x5120 3x256xuint8"), *VALUES)
HEADS = sizes("256x16 1x1 65x5 600x8 33x4xzeros 33x2xfaint 33x2xfaint-other 1040x20xoutliers")

SIZES: Choices = {
    "esimd_resadd_norm_gemv_fp8_pert": (resadd_norm_gemv_fp8_pert, RESADD),
    "esimd_resadd_norm_gemv2_fp8_pert": (
        resadd_norm_gemv2_fp8_pert,
        sizes(
            "256x64x1024 1x1x512 3x5x7 65x62x640xe5m2 2048x600x512 5x2x512xuint8 40x9x512xfaint "
            "40x9x512xfaint-other 1040x1056x4608xoutliers"
        ),
    ),
    "esimd_resadd_norm_gemv_int4_pert": (
        resadd_norm_gemv_int4_pert,
        (*sizes("256x2048 1x128 65x640 16411x512 600x2816 520x5120"), *VALUES),
    ),
    "esimd_scaled_resadd_norm_gemv_fp8_pert": (scaled_resadd_norm_gemv_fp8_pert, RESADD),
    "esimd_norm_gemv_fp8_pert": (norm_gemv_fp8_pert, (*HEADS, *sizes("63x8xe5m2 3x2xuint8"))),
    "esimd_norm_gemv_int4_pert": (norm_gemv_int4_pert, HEADS),
    "esimd_norm_gemv_fp8_blockscale": (norm_gemv_fp8_blockscale, (*HEADS, *sizes("257x3"))),
    # N around what one sub-group and one work-group take; K with and without a tail, over the size of a chunk.
    "esimd_norm_gemv_norm_fp16": (
        norm_gemv_norm_fp16,
        (*sizes("128x2816 1x64 3x1 5x7 65x257 63x4099 8x8192 8x8200"), *VALUES),
    ),
}
