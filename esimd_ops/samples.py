"""Seeded arguments for each operator, of ordinary and awkward shapes; used by tests, benchmarks and probes alike.

Outputs whose old contents an operator never reads are filled with NaN, so that a value left unwritten shows. Operands
updated in place hold ordinary values. Weights and activations have the magnitudes of trained models.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

Arguments = dict[str, object]


class Sample(NamedTuple):
    """Arguments of one call, by name and in order."""

    operator: str
    label: str
    arguments: Arguments


def normal(*shape: int, spread: float = 1.0, centre: float = 0.0) -> Tensor:
    return (torch.randn(*shape) * spread + centre).half()


def poison(*shape: int) -> Tensor:
    return torch.full(shape, torch.nan, dtype=torch.float16)


def norm_weight(K: int) -> Tensor:
    return normal(K, spread=0.1, centre=1.0)


def int4_matrix(N: int, K: int) -> tuple[Tensor, Tensor]:
    """Random nibbles [N, K/2], and scales [N, K/128] of both signs."""
    return torch.randint(0, 256, (N, K // 2), dtype=torch.uint8), normal(N, K // 128, spread=0.01)


def rms_norm(T: int, K: int) -> Arguments:
    return {"input": normal(T, K), "output": poison(T, K), "weight": norm_weight(K), "eps": 1e-6}


def fused_add_rms_norm(T: int, K: int) -> Arguments:
    return {"hidden_states": normal(T, K), "residual": normal(T, K), "weight": norm_weight(K), "eps": 1e-6}


def fused_scaled_add_rms_norm(T: int, K: int) -> Arguments:
    return {**fused_add_rms_norm(T, K), "scalar": 0.82}


def rms_norm_gated(T: int, K: int) -> Arguments:
    return {
        "x": normal(T, K),
        "z": normal(T, K, spread=3.0),
        "weight": norm_weight(K),
        "output": poison(T, K),
        "eps": 1e-6,
    }


def norm_add_norm(T: int, K: int) -> Arguments:
    return {
        "h2_raw": normal(T, K),
        "h1": normal(T, K),
        "w1": norm_weight(K),
        "w2": norm_weight(K),
        "out": poison(T, K),
        "eps1": 1e-6,
        "eps2": 1e-5,
    }


def accum_norm_add_norm(top_k: int, K: int) -> Arguments:
    return {
        "routed_output": normal(top_k + 1, K),  # one row more than is used
        "h1": normal(1, K),
        "w1": norm_weight(K),
        "w2": norm_weight(K),
        "out": poison(1, K),
        "top_k": top_k,
        "eps1": 1e-6,
        "eps2": 1e-5,
    }


def norm_gemv_norm_fp16(N: int, K: int) -> Arguments:
    return {
        "residual": normal(1, K),
        "scale_with_root": norm_weight(K),
        "proj_w": normal(N, K, spread=0.02),
        "pre_ff_w": norm_weight(K),
        "router_logits": poison(1, N),
        "moe_input": poison(1, K),
        "eps": 1e-6,
    }


def gemv_int4(N: int, K: int) -> Arguments:
    weight, scale = int4_matrix(N, K)
    return {"input": normal(1, K), "weight": weight, "weight_scale": scale, "output": poison(1, N)}


def gemv_int4_fused2(N0: int, N1: int, K: int) -> Arguments:
    w0, s0 = int4_matrix(N0, K)
    w1, s1 = int4_matrix(N1, K)
    return {"input": normal(1, K), "w0": w0, "s0": s0, "o0": poison(1, N0), "w1": w1, "s1": s1, "o1": poison(1, N1)}


def gemm_int4_pgrp(T: int, N: int, K: int) -> Arguments:
    weight, scale = int4_matrix(N, K)
    return {"input": normal(T, K), "weight": weight, "weight_scale": scale, "output": poison(T, N)}


# One row and many; K of one element, odd, under and over a work-group, and as in real models.
ROWS = ((1, 64), (1, 1), (3, 7), (1, 2816), (5, 255), (2, 257), (7, 4100), (300, 128))

# operator: how to make its arguments, and the sizes to make them with; the first is the ordinary one
SIZES: dict[str, tuple[Callable[..., Arguments], tuple[tuple[int, ...], ...]]] = {
    "esimd_rms_norm": (rms_norm, ROWS),
    "esimd_fused_add_rms_norm": (fused_add_rms_norm, ROWS),
    "esimd_fused_scaled_add_rms_norm": (fused_scaled_add_rms_norm, ROWS),
    "esimd_fused_add_rms_norm_batched": (fused_add_rms_norm, ROWS),
    "esimd_rms_norm_gated": (rms_norm_gated, ((8, 128), *ROWS)),
    "esimd_norm_add_norm": (norm_add_norm, ROWS),
    "esimd_accum_norm_add_norm": (accum_norm_add_norm, ((8, 2816), (1, 64), (2, 1), (3, 257), (10, 4100))),
    # N around what one sub-group and one work-group take; K with and without a tail, over the size of a chunk.
    "esimd_norm_gemv_norm_fp16": (
        norm_gemv_norm_fp16,
        ((128, 2816), (1, 64), (3, 1), (5, 7), (65, 257), (63, 4099), (8, 8200)),
    ),
    "esimd_gemv_int4": (gemv_int4, ((256, 2816), (1, 128), (3, 256), (65, 640), (63, 4096), (129, 4224), (16, 11008))),
    "esimd_gemv_int4_fused2": (
        gemv_int4_fused2,
        ((96, 32, 1024), (1, 1, 128), (3, 62, 2816), (64, 64, 4096), (2, 130, 4224)),
    ),
    "esimd_gemm_int4_pgrp": (
        gemm_int4_pgrp,
        ((8, 64, 1024), (1, 65, 1152), (2, 1, 128), (7, 33, 640), (9, 31, 1024), (64, 16, 2816), (67, 48, 1280)),
    ),
}


def make(operator: str, sizes: tuple[int, ...] | None = None) -> Sample:
    """Seeded arguments of an operator; of its ordinary sizes unless told."""
    create, choices = SIZES[operator]
    sizes = choices[0] if sizes is None else sizes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(len(operator) * 1000 + sum(sizes))
        return Sample(operator, "x".join(map(str, sizes)), create(*sizes))


def every() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every operator with each of its sizes."""
    for operator, (_, choices) in SIZES.items():
        for sizes in choices:
            yield operator, sizes
