"""One call under one schedule as a file that needs nothing else: operator, sizes, inputs, schedule; and back.

The file is JSON, the inputs in it are the bytes of each tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import torch
from torch import Tensor

from esimd_ops.tensors import raw
from esimd_ops.trials import files
from schema_patch.model import ToolError

from .order import Order

VERSION = 1


class Input(msgspec.Struct, frozen=True):
    """One argument: a plain value, or a tensor of this dtype, shape and stride with its elements' bytes in order."""

    name: str
    value: bool | int | float | str | list[Any] | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    data: bytes = b""  # as base64


class Case(msgspec.Struct, frozen=True):
    """One call under one schedule. Of an operator that no table knows what it writes and its reference's values."""

    version: int
    namespace: str
    operator: str
    sizes: str
    schedule: str
    name: str
    inputs: tuple[Input, ...]
    writes: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()
    expected: tuple[Input, ...] = ()


def written(inputs: Mapping[str, object]) -> tuple[Input, ...]:
    """Arguments as a case holds them. Raises ToolError for a value that has no form there."""
    return tuple(_input(name, value) for name, value in inputs.items())


def _input(name: str, value: object) -> Input:
    if not isinstance(value, Tensor):
        if value is None or isinstance(value, bool | int | float | str | list):
            return Input(name, value=value)
        raise ToolError(f"argument '{name}': a {type(value).__name__} cannot be written into a reproducer")
    return Input(name, None, str(value.dtype), tuple(value.shape), tuple(value.stride()), bytes(raw(value).tolist()))


def read(path: str) -> Case:
    """Raises ToolError for a file that is no case of this version."""
    return files.read(path, Case, "reproducer", version=VERSION)


def order_of(path: str, order: Order) -> Order:
    """The order that runs the case of a file again."""
    case = read(path)
    return msgspec.structs.replace(
        order,
        namespace=case.namespace,
        operators=(case.operator,),
        shapes=case.sizes,
        schedules={case.name: case.schedule},
        replay=path,
    )


def values(inputs: tuple[Input, ...]) -> dict[str, Any]:
    """By name, tensors with the strides that they had."""
    made: dict[str, Any] = {}
    for item in inputs:
        if not item.dtype:
            made[item.name] = item.value
            continue
        dtype = getattr(torch, item.dtype.removeprefix("torch."))
        dense = torch.frombuffer(bytearray(item.data), dtype=dtype).view(item.shape)
        extent = 1 + sum((n - 1) * s for n, s in zip(item.shape, item.stride, strict=True))
        memory = torch.zeros(extent, dtype=torch.uint8 if dtype.itemsize == 1 else dtype).view(dtype)
        made[item.name] = memory.as_strided(item.shape, item.stride)
        made[item.name].copy_(dense)
    return made


def described(case: Case) -> SimpleNamespace:
    """As `given` reads what a user says of an operator: the one call, what it writes, and what should come out."""
    op, expected = case.operator, values(case.expected)
    kept = [name for name in case.writes if name not in case.overwritten]
    return SimpleNamespace(
        SAMPLES={op: values(case.inputs)},
        WRITES={op: case.writes},
        INPLACE={op: kept},
        REFERENCE={op: lambda **_: expected} if expected else {},
    )
