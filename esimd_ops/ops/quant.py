"""Quantising to int4. The kernels are `csrc/quant`."""

from torch import Tensor

from .derived import operator


@operator
def q4_0_quantize(input: Tensor, out_qweight: Tensor, out_scale: Tensor) -> None:
    """Quantise to nibbles, a block of 128 at a time: its scale is the element of largest magnitude divided by -8.

    input: [T, K] fp16 or bf16, K a multiple of 128
    out_qweight: [T, K/8] int32, overwritten with eight nibbles a word, the lowest first
    out_scale: [T, K/128] fp16, overwritten
    """
