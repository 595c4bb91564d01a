"""Products of one token with weight matrices, fused side by side.

Sums are of unrounded products; each output is rounded once.
"""

from torch import Tensor

from .parts import CallArguments, Decoder, Tensors, block_weight, fp8, gelu_tanh, int4_weight, product, rounded, terms


def _fp8_gemv(call: CallArguments, weight: Tensor, scale: Tensor, output: Tensor) -> Tensor:
    """`scale` is one number, or one a row of the weight. Subnormal codes are read as zero."""
    row = scale.to(call.compute).reshape(-1) if scale.numel() > 1 else scale.to(call.compute).reshape(())
    return product(call.wide.input, fp8(weight, Decoder.FLUSH, call.compute), output, row)


def esimd_gemv_fp8_pern(call: CallArguments) -> Tensors:
    return {"output": _fp8_gemv(call, call.weight, call.weight_scale, call.output)}


# With one fp32 weight_scale for the whole weight.
esimd_gemv_fp8_pert = esimd_gemv_fp8_pert_bmg = esimd_gemv_fp8_pern


def esimd_gemv_fp8_pern_fused2(call: CallArguments) -> Tensors:
    return {
        "o0": _fp8_gemv(call, call.w0, call.s0, call.o0),
        "o1": _fp8_gemv(call, call.w1, call.s1, call.o1),
    }


def esimd_gemv_fp8_pern_fused3(call: CallArguments) -> Tensors:
    return {**esimd_gemv_fp8_pern_fused2(call), "o2": _fp8_gemv(call, call.w2, call.s2, call.o2)}


esimd_gemv_fp8_pert_fused2 = esimd_gemv_fp8_pern_fused2
esimd_gemv_fp8_pert_fused3 = esimd_gemv_fp8_pern_fused3


def esimd_gemv_fp8_blockscale_fused2(call: CallArguments) -> Tensors:
    """One scale for 128 x 128 weights, every code exact."""
    return {
        "o0": product(call.wide.input, block_weight(call.w0, call.s0, call.compute), call.o0),
        "o1": product(call.wide.input, block_weight(call.w1, call.s1, call.compute), call.o1),
    }


def esimd_gemv_fp8_blockscale_fp16_fused2(call: CallArguments) -> Tensors:
    """As esimd_gemv_fp8_blockscale_fused2 with a plain fp16 second weight, which has no scale."""
    return {
        "o0": product(call.wide.input, block_weight(call.w0, call.s0, call.compute), call.o0),
        "o1": product(call.wide.input, call.wide.w1, call.o1),
    }


def esimd_gemv_fp16(call: CallArguments) -> Tensors:
    return {"output": product(call.wide.input, call.wide.weight, call.output)}


def esimd_gemv_fp16_gelu_mul(call: CallArguments) -> Tensors:
    """Gate is input @ the first N rows of the weight, up input @ the others, both unrounded."""
    gate, up = (terms(call.wide.input) @ terms(call.wide.weight).T).chunk(2, -1)
    return {"output": rounded(gelu_tanh(gate) * up)}


def esimd_gemv_int4(call: CallArguments) -> Tensors:
    weight = int4_weight(call.weight, call.weight_scale, call.compute)
    return {"output": product(call.wide.input, weight, call.output)}


def esimd_gemv_int4_fused2(call: CallArguments) -> Tensors:
    return {
        "o0": product(call.wide.input, int4_weight(call.w0, call.s0, call.compute), call.o0),
        "o1": product(call.wide.input, int4_weight(call.w1, call.s1, call.compute), call.o1),
    }
