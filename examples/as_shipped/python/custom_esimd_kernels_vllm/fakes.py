"""Fakes as an inference server registers them: a fresh tensor like the buffer that the operator hands back.

Each follows the schema that the loaded binary declares, so the same Python serves it before and after a fix: nothing
for `-> ()`, the argument itself for an alias, a fresh tensor otherwise. The operators that decode int4 weights for one
token have none, as published.
"""

from collections.abc import Callable

import torch

from .ops import HANDED_BACK, operator

WITHOUT = {
    "esimd_gemv_int4",
    "esimd_gemv_int4_fused2",
    "esimd_resadd_norm_gemv_int4_pert",
    "esimd_norm_gemv_int4_pert",
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
    for name, returned in HANDED_BACK.items():
        if name not in WITHOUT:
            schema = operator(name)._schema
            torch.library.register_fake(schema.name, fake_of(schema, returned))
