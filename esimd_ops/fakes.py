"""What torch.compile may assume about each operator without running it: shapes and devices, no arithmetic.

Every operator writes into buffers that its caller made, so there is no shape to predict; what it returns follows from
its schema. The operators of `esimd_ops` return nothing, and their own host functions check the arguments: a call that
would be refused is refused while it is traced. The same operators under another namespace, as published or after a
patch, hand a buffer back: the schema says whether as an alias or (as published, wrongly) as a fresh tensor.

A fake also stands in for the operator on meta tensors, where it must not pass over real buffers in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from schema_patch.schemas import table
from schema_patch.schemas.grammar import Schema

from . import native, registry

OURS = "esimd_ops"


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
        if schema.namespace == OURS:
            _check(schema, values)
        if not schema.returns:
            return None
        return tensors[returned] if schema.returns_alias else torch.empty_like(tensors[returned])

    return fake


def _check(schema: Schema, values: dict[str, object]) -> None:
    """Let the operator's host function look at the arguments. On meta tensors it does no more than that.

    A size that is not known yet counts as the one that the trace began with; one that depends on data is not checked.
    """
    native.load()
    with unset_fake_temporarily():
        try:
            known = {name: _meta(value) for name, value in values.items()}
        except _DependsOnData:
            return
        registry.overload(schema).redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), **known)


class _DependsOnData(Exception):
    """A size that no trace knows."""


def _meta(value: object) -> Any:
    if isinstance(value, Tensor):
        sizes, strides = ([_number(n) for n in each] for each in (value.shape, value.stride()))
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device="meta")
    return _number(value)


def _number(value: object) -> Any:
    if not isinstance(value, SymInt | SymFloat | SymBool):
        return value
    if (hint := value.node.hint) is None:
        raise _DependsOnData
    return hint


def register(namespace: str = OURS) -> tuple[str, ...]:
    """Register a fake for every known operator of a namespace that has none yet; returns their names.

    Call after the library that registers the operators is loaded.
    """
    known = table.load().entries
    every = {op: found for op, found in registry.schemas(namespace).items() if op in known}
    missing = {op: found for op, found in every.items() if not registry.has_fake(f"{found.namespace}::{op}")}
    for found in missing.values():
        torch.library.register_fake(found.name, fake_of(found))
    return tuple(missing)
