"""Samples of quantising."""

import torch

from .build import Arguments, Choices, activations, poison, poison_int, sizes


def q4_0_quantize(T: int, K: int, variant: str = "") -> Arguments:
    input = activations(T, K, variant=variant)
    if variant == "zeros":
        input[0, :128] = 0
        input[-1, -1], input[-1, -2] = -9.0, 9.0  # as large in both directions
    if variant == "bf16":
        input = input.to(torch.bfloat16)
    return {"input": input, "out_qweight": poison_int(T, K // 8), "out_scale": poison(T, K // 128)}


SIZES: Choices = {
    "q4_0_quantize": (
        q4_0_quantize,
        sizes("16x1024 1x128 65x384 3x256xzeros 5x512xbf16 300x128 2x8320xoutliers 2x256xtiny"),
    ),
}
