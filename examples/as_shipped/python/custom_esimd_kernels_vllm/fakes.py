"""Fakes as an inference server registers them: a fresh tensor like the buffer that the operator hands back.

Each follows the schema that the loaded binary declares, so the same Python serves it before and after a fix: nothing
for `-> ()`, the argument itself for an alias, a fresh tensor otherwise.
"""

from collections.abc import Callable

import torch

NAMESPACE = "custom_esimd_kernels_vllm"

# operator: the argument it hands back, or None
RETURNED = {
    "esimd_gemv_int4": "output",
    "esimd_gemv_int4_fused2": "o0",
    "esimd_gemm_int4_pgrp": "output",
    "esimd_rms_norm": "output",
    "esimd_fused_add_rms_norm": "hidden_states",
    "esimd_fused_scaled_add_rms_norm": "hidden_states",
    "esimd_fused_add_rms_norm_batched": "hidden_states",
    "esimd_rms_norm_gated": "output",
    "esimd_norm_add_norm": None,
    "esimd_accum_norm_add_norm": None,
    "esimd_norm_gemv_norm_fp16": None,
}


def fake_of(schema: torch.FunctionSchema, returned: str | None) -> Callable:
    """The fake of an operator with this schema that hands back the argument named `returned`."""
    names = [argument.name for argument in schema.arguments]

    def fake(*args: object, **kwargs: object) -> torch.Tensor | None:
        if not schema.returns:
            return None
        buffer = {**dict(zip(names, args, strict=False)), **kwargs}[returned]
        return buffer if schema.returns[0].alias_info else torch.empty_like(buffer)

    return fake


def register() -> None:
    for name, returned in RETURNED.items():
        schema = getattr(getattr(torch.ops, NAMESPACE), name).default._schema
        torch.library.register_fake(f"{NAMESPACE}::{name}", fake_of(schema, returned))
