"""Products of few tokens with quantised weight matrices."""

import torch

from .parts import CallArguments, Decoder, Tensors, block_weight, fp8, int4_weight, product


def esimd_gemm_fp8_pert(call: CallArguments) -> Tensors:
    """Every E4M3 code is exact. The original library reads subnormal codes as zero for one token, for N <= 16, for
    T > 64 and where K is no multiple of 64, and exactly elsewhere."""
    weight = fp8(call.weight, Decoder.EXACT, call.compute)
    return {"output": product(call.wide.input, weight, call.output, call.wide.weight_scale.reshape(()))}


def esimd_gemm_int4_pgrp(call: CallArguments) -> Tensors:
    """Each weight is rounded to half before it is used."""
    weight = int4_weight(call.weight, call.weight_scale, torch.float32).half()
    return {"output": product(call.wide.input, weight.to(call.compute), call.output)}


def esimd_gemm_fp8_blockscale(call: CallArguments) -> Tensors:
    """One scale for 128 x 128 weights, every code exact."""
    weight = block_weight(call.weight, call.weight_scale, call.compute)
    return {"output": product(call.wide.input, weight, call.output)}
