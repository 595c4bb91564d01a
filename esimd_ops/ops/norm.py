"""RMSNorm, alone and with the additions around it; weights are used as they are, without +1. Kernels: `csrc/norm`."""

from torch import Tensor

from .derived import like, operator


@operator
def esimd_rms_norm(input: Tensor, output: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`output = input * inverse_rms(input) * weight`, every row.

    input: [..., K] fp16
    output: like input, overwritten; may be input itself
    weight: [K] fp16
    eps: inside the root
    """


@operator
def esimd_fused_add_rms_norm(hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`a = hidden_states + residual`, which is the new residual; `hidden_states = half(a) * inverse_rms(a) * weight`.

    hidden_states, residual: [..., K] fp16, both updated in place
    weight: [K] fp16
    eps: inside the root
    """


@operator
def esimd_fused_scaled_add_rms_norm(
    hidden_states: Tensor, residual: Tensor, weight: Tensor, eps: float, scalar: float
) -> Tensor:
    """As esimd_fused_add_rms_norm with `a = (hidden_states + residual) * scalar`."""


@like(esimd_fused_add_rms_norm)
def esimd_fused_add_rms_norm_batched() -> Tensor:
    """The same as esimd_fused_add_rms_norm; the original takes one row there and many here."""


@operator
def esimd_rms_norm_gated(x: Tensor, z: Tensor, weight: Tensor, output: Tensor, eps: float) -> Tensor:
    """`output = x * inverse_rms(x) * weight * silu(z)`, every row.

    x, z: [..., V] fp16
    weight: [V] fp16
    output: like x, overwritten; may be x or z itself
    eps: inside the root
    """


@operator
def esimd_norm_add_norm(
    h2_raw: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, out: Tensor, eps1: float, eps2: float
) -> None:
    """`t = h2_raw * inverse_rms(h2_raw, eps1) * w1 + h1`, which is the new h1;
    `out = half(t) * inverse_rms(t, eps2) * w2`.

    h2_raw: [..., K] fp16
    h1: like h2_raw, updated in place
    w1, w2: [K] fp16
    out: like h2_raw, overwritten; may be h2_raw itself
    """


@operator
def esimd_accum_norm_add_norm(
    routed_output: Tensor, h1: Tensor, w1: Tensor, w2: Tensor, out: Tensor, top_k: int, eps1: float, eps2: float
) -> None:
    """esimd_norm_add_norm of the sum of the first top_k rows.

    routed_output: [at least top_k, K] fp16
    h1, out: [1, K] fp16
    """
