"""RMSNorm, alone and with the additions around it. Weights are used as they are, without +1."""

from torch import Tensor

from .parts import CallArguments, Tensors, inverse_rms, rounded, silu, terms


def _add_rms_norm(call: CallArguments, scalar: float) -> Tensors:
    total = (terms(call.wide.hidden_states) + terms(call.wide.residual)) * scalar
    stored = total.half()
    # The mean is of the unrounded sum; what is normalised is the stored one.
    hidden = stored.to(call.compute) * inverse_rms(total, call.eps) * call.wide.weight
    return {"hidden_states": rounded(hidden), "residual": rounded(total)}


def _norm_add_norm(call: CallArguments, h2: Tensor) -> Tensors:
    total = terms(h2 * inverse_rms(h2, call.eps1) * call.wide.w1) + terms(call.wide.h1)
    stored = total.half()
    out = stored.to(call.compute) * inverse_rms(total, call.eps2) * call.wide.w2
    return {"h1": rounded(total), "out": rounded(out)}


def esimd_rms_norm(call: CallArguments) -> Tensors:
    x = call.wide.input
    return {"output": rounded(x * inverse_rms(x, call.eps) * call.wide.weight)}


def esimd_fused_add_rms_norm(call: CallArguments) -> Tensors:
    return _add_rms_norm(call, 1.0)


esimd_fused_add_rms_norm_batched = esimd_fused_add_rms_norm


def esimd_fused_scaled_add_rms_norm(call: CallArguments) -> Tensors:
    return _add_rms_norm(call, call.scalar)


def esimd_rms_norm_gated(call: CallArguments) -> Tensors:
    x = call.wide.x
    return {"output": rounded(x * inverse_rms(x, call.eps) * call.wide.weight * silu(call.wide.z))}


def esimd_norm_add_norm(call: CallArguments) -> Tensors:
    return _norm_add_norm(call, call.wide.h2_raw)


def esimd_accum_norm_add_norm(call: CallArguments) -> Tensors:
    """As esimd_norm_add_norm with h2 = the sum of the first top_k rows."""
    h2 = call.routed_output.flatten(0, -2)[: call.top_k].to(call.compute)
    return _norm_add_norm(call, terms(h2).sum(0).reshape(call.h1.shape))
