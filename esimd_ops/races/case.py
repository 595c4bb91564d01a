"""One call under one schedule as a file that needs nothing else: operator, sizes, inputs, schedule; and back.

The file is JSON, the inputs in it are the bytes of each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch
from torch import Tensor

from esimd_ops.samples import Arguments
from esimd_ops.tensors import raw
from esimd_ops.trials import files
from esimd_ops.trials.given import ByUser
from esimd_ops.trials.judge import Truth
from esimd_ops.trials.subject import TrialSubject
from schema_patch.model import Effect, ToolError
from schema_patch.schemas.grammar import Schema

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


class OfCase(TrialSubject):
    """The operator of a case that no table knows, with its one call."""

    def __init__(self, case: Case) -> None:
        self.name, self.writes, self.overwritten, self.returned = case.operator, case.writes, case.overwritten, None
        self._case = case

    def labels(self, shapes: str = "all") -> tuple[str, ...]:
        del shapes
        return (self._case.sizes,)

    def make(self, label: str) -> Arguments:
        del label
        return values(self._case.inputs)

    def truth(self, arguments: Arguments) -> Truth | None:  # noqa: ARG002  recorded
        expected = values(self._case.expected)
        return ByUser(expected, self.overwritten) if expected else None

    def effect(self, schema: Schema) -> Effect | None:  # noqa: ARG002
        return Effect(self.name, self.writes, "unknown", "a reproducer")

    def fake(self, schema: Schema) -> Callable[..., Any] | None:  # noqa: ARG002
        return None
