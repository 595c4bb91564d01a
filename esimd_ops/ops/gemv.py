"""One token times weight matrices, also several side by side. The kernels are `csrc/gemv`."""

from torch import Tensor

from .derived import like, operator


@operator
def esimd_gemv_fp8_pern(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor, N: int, K: int) -> Tensor:
    """`output = weight_scale * (input @ weight.T)`, subnormal codes of the weight read as zero.

    input: [1, K] fp16
    weight: [N, K] fp8 (float8_e4m3fn, float8_e5m2, or uint8 holding E4M3 bits)
    weight_scale: [N] fp16, one a row
    output: [1, N] fp16, overwritten
    N, K: the sizes of the weight
    """


@operator
def esimd_gemv_fp8_pern_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, N0: int, w1: Tensor, s1: Tensor, o1: Tensor, N1: int, K: int
) -> Tensor:
    """Two esimd_gemv_fp8_pern with one input, the weights of one format; returns o0."""


@operator
def esimd_gemv_fp8_pern_fused3(
    input: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    N0: int,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    N1: int,
    w2: Tensor,
    s2: Tensor,
    o2: Tensor,
    N2: int,
    K: int,
) -> Tensor:
    """Three esimd_gemv_fp8_pern with one input, the weights of one format; returns o0."""


@operator
def esimd_gemv_fp8_pert(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """As esimd_gemv_fp8_pern with one scale for the whole weight.

    weight_scale: one fp32, [] or [1]
    """


@like(esimd_gemv_fp8_pert)
def esimd_gemv_fp8_pert_bmg() -> Tensor:
    """The same as esimd_gemv_fp8_pert; the original has a kernel tuned for Battlemage under this name."""


@operator
def esimd_gemv_fp8_pert_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, w1: Tensor, s1: Tensor, o1: Tensor
) -> Tensor:
    """Two esimd_gemv_fp8_pert with one input, the weights of one format; returns o0."""


@operator
def esimd_gemv_fp8_pert_fused3(
    input: Tensor,
    w0: Tensor,
    s0: Tensor,
    o0: Tensor,
    w1: Tensor,
    s1: Tensor,
    o1: Tensor,
    w2: Tensor,
    s2: Tensor,
    o2: Tensor,
) -> Tensor:
    """Three esimd_gemv_fp8_pert with one input, the weights of one format; returns o0."""


@operator
def esimd_gemv_fp8_blockscale_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, w1: Tensor, s1: Tensor, o1: Tensor, block_n: int, block_k: int
) -> Tensor:
    """`o = input @ (w * s).T` twice, one scale for 128 x 128 weights, every code exact; returns o0.

    input: [1, K] fp16, K a multiple of 128
    w: [N, K] float8_e4m3fn
    s: [ceil(N/128), K/128] fp32
    o: [1, N] fp16, both overwritten
    block_n, block_k: 128
    """


@operator
def esimd_gemv_fp8_blockscale_fp16_fused2(
    input: Tensor, w0: Tensor, s0: Tensor, o0: Tensor, w1: Tensor, o1: Tensor, block_n: int, block_k: int
) -> Tensor:
    """As esimd_gemv_fp8_blockscale_fused2 with a plain second weight; returns o0.

    w1: [N1, K] fp16
    """


@operator
def esimd_gemv_fp16(input: Tensor, weight: Tensor, output: Tensor) -> Tensor:
    """`output = input @ weight.T`.

    input: [T, K] fp16
    weight: [N, K] fp16
    output: [T, N] fp16, overwritten
    """


@operator
def esimd_gemv_fp16_gelu_mul(input: Tensor, weight: Tensor, output: Tensor) -> Tensor:
    """`output = gelu_tanh(gate) * up`, where gate and up are `input @ weight.T` in halves, unrounded.

    input: [1, K] fp16
    weight: [2 N, K] fp16, the N rows of gate first
    output: [1, N] fp16, overwritten
    """


@operator
def esimd_gemv_int4(input: Tensor, weight: Tensor, weight_scale: Tensor, output: Tensor) -> Tensor:
    """`output = input @ W.T` with `W[n, k] = (u - 8) * weight_scale[n, k // 128]`.

    input: [1, K] fp16, K a multiple of 128
    weight: [N, K/2] uint8, two nibbles u a byte, the low one first
    weight_scale: [N, K/128] fp16
    output: [1, N] fp16, overwritten
    """


@like(esimd_gemv_fp8_pert_fused2)
def esimd_gemv_int4_fused2() -> Tensor:
    """Two esimd_gemv_int4 with one input; returns o0."""
