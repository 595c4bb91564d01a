"""Samples of the norm operators."""

from torch import Tensor

from .build import Arguments, Choices, activations, epsilon, norm_weight, normal, poison, sizes

# One row and many; K of one element, odd, under and over a work-group, and as in real models.
ROWS = sizes("1x64 1x1 3x7 1x2816 5x255 2x257 7x4100 300x128")
VALUES = sizes("1x512xfaint 1x512xfaint-other 1x4608xoutliers")


def rms_norm(T: int, K: int, variant: str = "") -> Arguments:
    input = activations(T, K, variant=variant)
    if variant == "zeros":
        input[0] = 0
    return {"input": input, "output": poison(T, K), "weight": norm_weight(K, variant), "eps": epsilon(variant)}


def fused_add_rms_norm(T: int, K: int, variant: str = "") -> Arguments:
    hidden_states, residual = activations(T, K, variant=variant), activations(T, K, variant=variant)
    if variant == "zeros":
        residual[0] = -hidden_states[0]
    return {
        "hidden_states": hidden_states,
        "residual": residual,
        "weight": norm_weight(K, variant),
        "eps": epsilon(variant),
    }


def fused_scaled_add_rms_norm(T: int, K: int, variant: str = "") -> Arguments:
    return {**fused_add_rms_norm(T, K, variant), "scalar": 1.37 if variant == "faint-other" else 0.82}


def rms_norm_gated(T: int, K: int, variant: str = "") -> Arguments:
    return {
        "x": activations(T, K, variant=variant),
        "z": activations(T, K, variant="" if variant.startswith("faint") else variant, spread=3.0),
        "weight": norm_weight(K, variant),
        "output": poison(T, K),
        "eps": epsilon(variant),
    }


def first_weight(K: int, variant: str) -> Tensor:
    """Of two norms; where all is faint it is, too, so that the second norm has little to work on."""
    return normal(K, spread=1e-4, centre=1e-3) if variant.startswith("faint") else norm_weight(K, variant)


def epsilons(variant: str) -> Arguments:
    """Of two norms, each another."""
    return {"eps1": 1e-4, "eps2": 3e-6} if variant == "faint-other" else {"eps1": 1e-6, "eps2": 1e-5}


def added(*shape: int, variant: str) -> Tensor:
    """What is added to a norm: of "outliers" nothing where some subnormal weights are."""
    values = activations(*shape, variant=variant)
    if variant == "outliers":
        values[..., 3::122] = 0
    return values


def norm_add_norm(T: int, K: int, variant: str = "") -> Arguments:
    return {
        "h2_raw": activations(T, K, variant=variant),
        "h1": added(T, K, variant=variant),
        "w1": first_weight(K, variant),
        "w2": norm_weight(K, variant),
        "out": poison(T, K),
        **epsilons(variant),
    }


def accum_norm_add_norm(top_k: int, K: int, variant: str = "") -> Arguments:
    return {
        "routed_output": activations(top_k + 1, K, variant=variant),  # one row more than is used
        "h1": added(1, K, variant=variant),
        "w1": first_weight(K, variant),
        "w2": norm_weight(K, variant),
        "out": poison(1, K),
        "top_k": top_k,
        **epsilons(variant),
    }


SIZES: Choices = {
    "esimd_rms_norm": (rms_norm, (*ROWS, *sizes("1x1024xzeros"), *VALUES)),
    "esimd_fused_add_rms_norm": (fused_add_rms_norm, (*ROWS, *sizes("1x1024xzeros"), *VALUES)),
    "esimd_fused_scaled_add_rms_norm": (fused_scaled_add_rms_norm, (*ROWS, *VALUES)),
    "esimd_fused_add_rms_norm_batched": (
        fused_add_rms_norm,
        (*sizes("4x512"), *ROWS, *sizes("16x2560"), *VALUES, *sizes("101x1536xoutliers")),
    ),
    "esimd_rms_norm_gated": (
        rms_norm_gated,
        (*sizes("8x128"), *ROWS, *sizes("2x128xfaint 2x128xfaint-other 101x128xoutliers")),
    ),
    "esimd_norm_add_norm": (norm_add_norm, (*ROWS, *VALUES)),
    "esimd_accum_norm_add_norm": (
        accum_norm_add_norm,
        sizes("8x2816 1x64 2x1 3x257 10x4100 4x512xfaint 4x512xfaint-other 3x4608xoutliers"),
    ),
}
