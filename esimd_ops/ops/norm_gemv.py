"""One normalised token times weight matrices, the norm fused in front. The kernels are `csrc/gemv`."""

from torch import Tensor

from .derived import like, operator


@operator
def esimd_resadd_norm_gemv_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    normed_out: Tensor,
    eps: float,
) -> Tensor:
    """`a = hidden_states + residual`, `y = a * inverse_rms(a) * norm_weight`,
    `output = gemv_scale * (y @ gemv_weight.T)`, subnormal codes of the weight read as zero.

    hidden_states: [1, K] fp16
    residual: [1, K] fp16, becomes a
    norm_weight: [K] fp16
    gemv_weight: [N, K] fp8 (float8_e4m3fn, float8_e5m2, or uint8 holding E4M3 bits)
    gemv_scale: one fp32, [] or [1]
    output: [1, N] fp16, overwritten
    normed_out: [1, K] fp16, overwritten with y
    eps: inside the root
    """


@like(esimd_resadd_norm_gemv_fp8_pert)
def esimd_resadd_norm_gemv_int4_pert() -> Tensor:
    """As esimd_resadd_norm_gemv_fp8_pert with int4 weights, K a multiple of 128.

    gemv_weight: [N, K/8] int32, eight nibbles a word, the lowest first
    gemv_scale: [N, K/128] fp16
    """


@operator
def esimd_resadd_norm_gemv2_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    eps: float,
) -> Tensor:
    """As esimd_resadd_norm_gemv_fp8_pert for two weights of one format; the residual is only read. Returns o0."""


@operator
def esimd_scaled_resadd_norm_gemv_fp8_pert(
    hidden_states: Tensor,
    residual: Tensor,
    norm_weight: Tensor,
    qkv_weight: Tensor,
    qkv_scale: Tensor,
    qkv_out: Tensor,
    eps: float,
    scalar: float,
) -> None:
    """As esimd_resadd_norm_gemv_fp8_pert with `a = (hidden_states + residual) * scalar` and without normed_out."""


@operator
def esimd_norm_gemv_fp8_pert(
    x: Tensor,
    z: Tensor,
    norm_weight: Tensor,
    gemv_weight: Tensor,
    gemv_scale: Tensor,
    output: Tensor,
    HV: int,
    V: int,
    eps: float,
) -> Tensor:
    """`y = x * inverse_rms(x) * norm_weight * silu(z)` for each head,
    `output = gemv_scale * (y.flatten() @ gemv_weight.T)`, every E4M3 code exact.

    x, z: [HV, V] fp16, V 128
    norm_weight: [V] fp16
    gemv_weight: [N, HV * V] fp8 (float8_e4m3fn, float8_e5m2, or uint8 holding E4M3 bits)
    gemv_scale: one fp32, [] or [1]
    output: N elements, fp16, overwritten
    eps: inside the root
    """


@like(esimd_norm_gemv_fp8_pert)
def esimd_norm_gemv_int4_pert() -> Tensor:
    """As esimd_norm_gemv_fp8_pert with int4 weights.

    gemv_weight: [N, HV * V / 8] int32, eight nibbles a word, the lowest first
    gemv_scale: [N, HV * V / 128] fp16
    """


@like(esimd_norm_gemv_fp8_pert)
def esimd_norm_gemv_fp8_blockscale() -> Tensor:
    """As esimd_norm_gemv_fp8_pert with one scale for 128 x 128 weights.

    gemv_weight: [N, HV * V] float8_e4m3fn
    gemv_scale: [ceil(N/128), HV * V / 128] fp32
    """


@operator
def esimd_norm_gemv_norm_fp16(
    residual: Tensor,
    scale_with_root: Tensor,
    proj_w: Tensor,
    pre_ff_w: Tensor,
    router_logits: Tensor,
    moe_input: Tensor,
    eps: float,
) -> None:
    """`c = residual * inverse_rms(residual)`, `moe_input = c * pre_ff_w`,
    `router_logits = (c * scale_with_root) @ proj_w.T`.

    residual: [1, K] fp16, only read
    scale_with_root, pre_ff_w: [K] fp16
    proj_w: [N, K] fp16, N at least 1
    router_logits: [1, N] fp16, overwritten
    moe_input: [1, K] fp16, overwritten
    eps: inside the root
    """
