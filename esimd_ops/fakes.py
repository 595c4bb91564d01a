"""What torch.compile may assume about each operator without running it: shapes and devices, no arithmetic.

Every operator writes into buffers that its caller made, so there is no shape to predict; what it returns follows from
its schema. The operators of `esimd_ops` return nothing. The same operators under another namespace, as published or
after a patch, hand a buffer back: the schema says whether as an alias or (as published, wrongly) as a fresh tensor.

A fake also stands in for the operator on meta tensors, where it must not pass over real buffers in silence.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from schema_patch.schemas import table
from schema_patch.schemas.grammar import Schema

from . import registry


def fake_of(schema: Schema) -> Callable[..., Tensor | None]:
    """The fake of a known operator with this schema: all its tensors are on one device, or RuntimeError.

    Returns None for `-> ()`, the buffer itself for an alias, and a fresh tensor like it otherwise. Raises KeyError for
    an operator that is not in the table.
    """
    names = [argument.name for argument in schema.args]
    returned = table.load().entries[schema.op].returns if schema.returns else ""

    def fake(*args: object, **kwargs: object) -> Tensor | None:
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
        first = next(iter(tensors.values())).device
        for name, tensor in tensors.items():
            if tensor.device != first:
                raise RuntimeError(
                    f"{schema.op}: argument '{name}': expected a tensor on {first}, found one on {tensor.device}"
                )
        if not schema.returns:
            return None
        return tensors[returned] if schema.returns_alias else torch.empty_like(tensors[returned])

    return fake


def register(namespace: str = "esimd_ops") -> tuple[str, ...]:
    """Register a fake for every known operator of a namespace that has none yet; returns their names.

    Call after the library that registers the operators is loaded.
    """
    known = table.load().entries
    missing = {
        op: found for op, found in registry.schemas(namespace).items() if op in known and not registry.has_fake(found)
    }
    for found in missing.values():
        torch.library.register_fake(found.name, fake_of(found))
    return tuple(missing)
