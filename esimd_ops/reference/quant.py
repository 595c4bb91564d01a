"""Quantising to int4."""

import torch

from .parts import INT4_GROUP, CallArguments, Tensors, rounded


def q4_0_quantize(call: CallArguments) -> Tensors:
    """In each block of 128, m is the element of largest magnitude with its sign, a tie being positive; `d = m / -8` is
    the scale, and the nibble of x is `trunc(x / d + 8.5)` within 0 to 15, made from the unrounded d. A block of zeros
    has scale -0 and nibbles 8."""
    blocks = call.wide.input.unflatten(-1, (-1, INT4_GROUP))
    high, low = blocks.amax(-1), (-blocks).amax(-1)
    d = torch.where(high >= low, high, -low) / -8
    inverse = torch.where(d != 0, 1 / d, torch.zeros_like(d))
    codes = (blocks * inverse[..., None] + 8.5).trunc().clamp(0, 15).to(torch.uint8).flatten(-2)
    packed = codes[..., ::2] | (codes[..., 1::2] << 4)
    return {"out_qweight": packed.contiguous().view(torch.int32), "out_scale": rounded(d)}
