"""Products of one normalised token with weight matrices: the norm is fused in front.

The normalised token is used unrounded; where it is stored too, the stored copy is a by-product.
"""

from torch import Tensor

from .parts import (
    CallArguments,
    Decoder,
    Tensors,
    block_weight,
    fp8,
    int4_weight,
    inverse_rms,
    product,
    rounded,
    silu,
    terms,
)


def _sum_and_norm(call: CallArguments, scalar: float) -> tuple[Tensor, Tensor]:
    """The new residual, and the normalised sum."""
    total = (call.wide.hidden_states + call.wide.residual) * scalar
    return rounded(total), total * inverse_rms(total, call.eps) * call.wide.norm_weight


def _gated(call: CallArguments) -> Tensor:
    """[1, HV * V]: each head of V elements has a norm of its own, and all heads one weight."""
    x, z = call.wide.x.reshape(call.HV, call.V), call.wide.z.reshape(call.HV, call.V)
    heads: Tensor = x * inverse_rms(x, call.eps) * call.wide.norm_weight.reshape(call.V) * silu(z)
    return heads.reshape(1, -1)


def esimd_resadd_norm_gemv_fp8_pert(call: CallArguments) -> Tensors:
    """Subnormal codes are read as zero."""
    stored, y = _sum_and_norm(call, 1.0)
    weight = fp8(call.gemv_weight, Decoder.FLUSH, call.compute)
    output = product(y, weight, call.output, call.wide.gemv_scale.reshape(()))
    return {"residual": stored, "output": output, "normed_out": rounded(y)}


def esimd_resadd_norm_gemv_int4_pert(call: CallArguments) -> Tensors:
    stored, y = _sum_and_norm(call, 1.0)
    output = product(y, int4_weight(call.gemv_weight, call.gemv_scale, call.compute), call.output)
    return {"residual": stored, "output": output, "normed_out": rounded(y)}


def esimd_resadd_norm_gemv2_fp8_pert(call: CallArguments) -> Tensors:
    """The sum is not stored."""
    _, y = _sum_and_norm(call, 1.0)
    return {
        "o0": product(y, fp8(call.w0, Decoder.FLUSH, call.compute), call.o0, call.wide.s0.reshape(())),
        "o1": product(y, fp8(call.w1, Decoder.FLUSH, call.compute), call.o1, call.wide.s1.reshape(())),
    }


def esimd_scaled_resadd_norm_gemv_fp8_pert(call: CallArguments) -> Tensors:
    """The contract leaves open whether y is made of a or of the stored half(a); here it is a."""
    stored, y = _sum_and_norm(call, call.scalar)
    weight = fp8(call.qkv_weight, Decoder.FLUSH, call.compute)
    return {"residual": stored, "qkv_out": product(y, weight, call.qkv_out, call.wide.qkv_scale.reshape(()))}


def esimd_norm_gemv_fp8_pert(call: CallArguments) -> Tensors:
    """Every E4M3 code is exact."""
    weight = fp8(call.gemv_weight, Decoder.EXACT, call.compute)
    return {"output": product(_gated(call), weight, call.output, call.wide.gemv_scale.reshape(()))}


def esimd_norm_gemv_int4_pert(call: CallArguments) -> Tensors:
    weight = int4_weight(call.gemv_weight, call.gemv_scale, call.compute)
    return {"output": product(_gated(call), weight, call.output)}


def esimd_norm_gemv_fp8_blockscale(call: CallArguments) -> Tensors:
    weight = block_weight(call.gemv_weight, call.gemv_scale, call.compute)
    return {"output": product(_gated(call), weight, call.output)}


def esimd_norm_gemv_norm_fp16(call: CallArguments) -> Tensors:
    c = call.wide.residual
    c = c * inverse_rms(c, call.eps)
    logits = terms(c * call.wide.scale_with_root) @ terms(call.wide.proj_w).T
    return {"router_logits": rounded(logits), "moe_input": rounded(c * call.wide.pre_ff_w)}
