"""Thin wrappers, one an operator. Those that hand a buffer back do so whatever the schema declares as the result."""

import torch
from torch import Tensor

_ops = torch.ops.custom_esimd_kernels_vllm

__all__ = [
    "esimd_accum_norm_add_norm",
    "esimd_fused_add_rms_norm",
    "esimd_fused_add_rms_norm_batched",
    "esimd_fused_scaled_add_rms_norm",
    "esimd_gemm_int4_pgrp",
    "esimd_gemv_int4",
    "esimd_gemv_int4_fused2",
    "esimd_norm_add_norm",
    "esimd_norm_gemv_norm_fp16",
    "esimd_rms_norm",
    "esimd_rms_norm_gated",
]


def _result(returned: Tensor | None, buffer: Tensor) -> Tensor:
    return buffer if returned is None else returned


def esimd_gemv_int4(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    return _result(_ops.esimd_gemv_int4(input, weight, weight_scale, output), output)


def esimd_gemv_int4_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, w1: Tensor, s1: Tensor, o1: Tensor
) -> Tensor:
    return _result(_ops.esimd_gemv_int4_fused2(input, w0, s0, o0, w1, s1, o1), o0)


def esimd_gemm_int4_pgrp(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    return _result(_ops.esimd_gemm_int4_pgrp(input, weight, weight_scale, output), output)


def esimd_rms_norm(input: Tensor, output: Tensor, weight: Tensor, eps: float) -> Tensor:
    return _result(_ops.esimd_rms_norm(input, output, weight, eps), output)


def esimd_fused_add_rms_norm(hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    return _result(_ops.esimd_fused_add_rms_norm(hidden_states, residual, weight, eps), hidden_states)


def esimd_fused_scaled_add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, scalar: float
) -> Tensor:
    returned = _ops.esimd_fused_scaled_add_rms_norm(hidden_states, residual, weight, eps, scalar)
    return _result(returned, hidden_states)


def esimd_fused_add_rms_norm_batched(hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    return _result(_ops.esimd_fused_add_rms_norm_batched(hidden_states, residual, weight, eps), hidden_states)


def esimd_rms_norm_gated(x: Tensor, z: Tensor, weight: Tensor, output: Tensor, eps: float) -> Tensor:
    return _result(_ops.esimd_rms_norm_gated(x, z, weight, output, eps), output)


def esimd_norm_add_norm(
    h2_raw: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, out: Tensor, eps1: float, eps2: float
) -> None:
    _ops.esimd_norm_add_norm(h2_raw, h1, w1, w2, out, eps1, eps2)


def esimd_accum_norm_add_norm(
    routed_output: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, out: Tensor, top_k: int, eps1: float, eps2: float
) -> None:
    _ops.esimd_accum_norm_add_norm(routed_output, h1, w1, w2, out, top_k, eps1, eps2)


def esimd_norm_gemv_norm_fp16(
    residual: Tensor,
    scale_with_root: Tensor,
    proj_w: Tensor,
    pre_ff_w: Tensor,
    router_logits: Tensor,
    moe_input: Tensor,
    eps: float,
) -> None:
    _ops.esimd_norm_gemv_norm_fp16(residual, scale_with_root, proj_w, pre_ff_w, router_logits, moe_input, eps)
