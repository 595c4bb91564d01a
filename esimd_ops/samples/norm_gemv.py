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
)

V = 128  # elements of a head


def resadd_norm_gemv_fp8_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "hidden_states": activations(1, K, variant=variant),
        "residual": activations(1, K, variant=variant),
        "norm_weight": norm_weight(K, variant),
        "gemv_weight": fp8_matrix(N, K, variant),
        "gemv_scale": one_scale(variant),
        "output": poison(1, N),
        "normed_out": poison(1, K),
        "eps": epsilon(variant),
    }


def resadd_norm_gemv_int4_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    weight, scale = int4_matrix(N, K, variant)
    packed = {"gemv_weight": weight.view(torch.int32), "gemv_scale": scale}
    return {**resadd_norm_gemv_fp8_pert(N, K, variant), **packed}


def resadd_norm_gemv2_fp8_pert(N0: int, N1: int, K: int, variant: str = "e4m3") -> Arguments:
    arguments: Arguments = {
        "hidden_states": activations(1, K, variant=variant),
        "residual": activations(1, K, variant=variant),
        "norm_weight": norm_weight(K, variant),
    }
    for i, N in enumerate((N0, N1)):
        arguments |= {f"w{i}": fp8_matrix(N, K, variant), f"s{i}": one_scale(variant, i + 1), f"o{i}": poison(1, N)}
    return {**arguments, "eps": epsilon(variant)}


def scaled_resadd_norm_gemv_fp8_pert(N: int, K: int, variant: str = "e4m3") -> Arguments:
    return {
        "hidden_states": activations(1, K, variant=variant),
        "residual": activations(1, K, variant=variant),
        "norm_weight": norm_weight(K, variant),
        "qkv_weight": fp8_matrix(N, K, variant),
        "qkv_scale": one_scale(variant),
        "qkv_out": poison(1, N),
        "eps": epsilon(variant),
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
VALUES = ((40, 512, "faint"), (40, 512, "faint-other"), (1040, 2560, "outliers"))
RESADD = (
    (256, 2048), (1, 512), (3, 7), (65, 640, "e5m2"), (16411, 512), (63, 4099), (2048, 2048), (24, 5120),
    (3, 256, "uint8"), *VALUES,
)  # fmt: skip
HEADS = (
    (256, 16), (1, 1), (65, 5), (600, 8), (33, 4, "zeros"),
    (33, 2, "faint"), (33, 2, "faint-other"), (1040, 20, "outliers"),
)  # fmt: skip

SIZES: Choices = {
    "esimd_resadd_norm_gemv_fp8_pert": (resadd_norm_gemv_fp8_pert, RESADD),
    "esimd_resadd_norm_gemv2_fp8_pert": (
        resadd_norm_gemv2_fp8_pert,
        (
            (256, 64, 1024),
            (1, 1, 512),
            (3, 5, 7),
            (65, 62, 640, "e5m2"),
            (2048, 600, 512),
            (5, 2, 512, "uint8"),
            (40, 9, 512, "faint"),
            (40, 9, 512, "faint-other"),
            (1040, 1056, 4608, "outliers"),
        ),
    ),
    "esimd_resadd_norm_gemv_int4_pert": (
        resadd_norm_gemv_int4_pert,
        ((256, 2048), (1, 128), (65, 640), (16411, 512), (600, 2816), (520, 5120), *VALUES),
    ),
    "esimd_scaled_resadd_norm_gemv_fp8_pert": (scaled_resadd_norm_gemv_fp8_pert, RESADD),
    "esimd_norm_gemv_fp8_pert": (norm_gemv_fp8_pert, (*HEADS, (63, 8, "e5m2"), (3, 2, "uint8"))),
    "esimd_norm_gemv_int4_pert": (norm_gemv_int4_pert, HEADS),
    "esimd_norm_gemv_fp8_blockscale": (norm_gemv_fp8_blockscale, (*HEADS, (257, 3))),
    # N around what one sub-group and one work-group take; K with and without a tail, over the size of a chunk.
    "esimd_norm_gemv_norm_fp16": (
        norm_gemv_norm_fp16,
        ((128, 2816), (1, 64), (3, 1), (5, 7), (65, 257), (63, 4099), (8, 8192), (8, 8200), *VALUES),
    ),
}
