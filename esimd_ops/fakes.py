"""What torch.compile may assume about each operator without running it.

Every operator of `esimd_ops` writes into buffers that its caller made and returns nothing, so there is no shape to
predict: the schema already says what is written. A fake also stands in for the operator on meta tensors, where it must
not pass over real buffers in silence.
"""

from collections.abc import Callable

import torch

OPERATORS = (
    "esimd_rms_norm",
    "esimd_fused_add_rms_norm",
    "esimd_fused_scaled_add_rms_norm",
    "esimd_fused_add_rms_norm_batched",
    "esimd_rms_norm_gated",
    "esimd_norm_add_norm",
    "esimd_accum_norm_add_norm",
    "esimd_norm_gemv_norm_fp16",
    "esimd_gemv_int4",
    "esimd_gemv_int4_fused2",
    "esimd_gemm_int4_pgrp",
)


def fake_of(schema: torch.FunctionSchema) -> Callable[..., None]:
    """The fake of an operator that returns nothing: all its tensors are on one device, or RuntimeError."""
    names = [argument.name for argument in schema.arguments]

    def fake(*args: object, **kwargs: object) -> None:
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
        first = next(iter(tensors.values())).device
        for name, tensor in tensors.items():
            if tensor.device != first:
                raise RuntimeError(
                    f"{schema.name.split('::')[-1]}: argument '{name}': expected a tensor on {first}, "
                    f"found one on {tensor.device}"
                )

    return fake


def register() -> None:
    """Register a fake for every operator. Call once, after `native.load()`."""
    for name in OPERATORS:
        operator = getattr(torch.ops.esimd_ops, name).default
        torch.library.register_fake(f"esimd_ops::{name}", fake_of(operator._schema))
