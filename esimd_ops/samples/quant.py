"""Samples of quantising."""

import torch

from .build import Arguments, Choices, activations, poison, poison_int


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
        (
            (16, 1024),
            (1, 128),
            (65, 384),
            (3, 256, "zeros"),
            (5, 512, "bf16"),
            (300, 128),
            (2, 8320, "outliers"),
            (2, 256, "tiny"),
        ),
    ),
}
