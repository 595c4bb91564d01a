"""The smallest case that shows a finding, in a file: operator, sizes, inputs, schedule and seed; and back.

The file is JSON: everything that the case needs is in it, the inputs as the bytes of each tensor.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from schema_patch.model import ToolError

from .order import Order, Outcome

VERSION = 1


class Input(msgspec.Struct, frozen=True):
    """One argument: a plain value, or a tensor of this dtype, shape and stride with its elements' bytes in order."""

    name: str
    value: bool | int | float | str | list[Any] | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    data: str = ""  # base64


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


def smallest(order: Order, outcome: Outcome) -> Case | None:
    """Of the rows with something wrong, the one with the fewest elements, under the first schedule that shows it."""
    import torch

    from esimd_ops.trials.given import Expected
    from esimd_ops.trials.subject import OfTable

    from . import subjects

    def size(inputs: Mapping[str, object]) -> int:
        return sum(value.numel() for value in inputs.values() if isinstance(value, torch.Tensor))

    cases = []
    for row in outcome.rows:
        shown = [name for name, (share, _) in row.wrong.items() if share] or (
            list(order.schedules)[:1] if row.seen else []
        )
        subject = subjects.of(order, row.op, outcome.ran[row.op].schema) if shown and row.op in outcome.ran else None
        if subject:
            arguments = subject.make(row.label)
            cases.append((size(arguments), row, shown[0], subject, arguments))
    if not cases:
        return None
    _, row, name, subject, arguments = min(cases, key=lambda case: case[0])
    inputs = tuple(_input(key, value) for key, value in arguments.items())
    case = Case(VERSION, order.namespace, row.op, row.label, order.schedules[name], name, inputs)
    if isinstance(subject, OfTable):
        return case
    truth = subject.truth(arguments)
    expected = tuple(_input(key, value) for key, value in truth.values.items()) if isinstance(truth, Expected) else ()
    return msgspec.structs.replace(case, writes=subject.writes, overwritten=subject.overwritten, expected=expected)


def _input(name: str, value: object) -> Input:
    import torch

    if not isinstance(value, torch.Tensor):
        if value is None or isinstance(value, bool | int | float | str | list):
            return Input(name, value=value)
        raise ToolError(f"argument '{name}': a {type(value).__name__} cannot be written into a reproducer")
    dense = value.contiguous().view(-1).view(torch.uint8) if value.numel() else torch.empty(0, dtype=torch.uint8)
    data = base64.b64encode(bytes(dense.tolist())).decode()
    return Input(name, dtype=str(value.dtype), shape=tuple(value.shape), stride=tuple(value.stride()), data=data)


def write(path: str, case: Case) -> None:
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error


def read(path: str) -> Case:
    """Raises ToolError for a file that is no case of this version."""
    try:
        case = msgspec.json.decode(Path(path).read_bytes(), type=Case)
    except OSError as error:
        raise ToolError(error.strerror or str(error), path) from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"not a reproducer: {error}", path) from error
    if case.version != VERSION:
        raise ToolError(f"expected a reproducer of version {VERSION}, found {case.version}", path)
    return case


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


def arguments(path: str) -> dict[str, Any]:
    """The inputs of a case, as they were."""
    return values(read(path).inputs)


def values(inputs: tuple[Input, ...]) -> dict[str, Any]:
    """By name, tensors with the strides that they had."""
    import torch

    made: dict[str, Any] = {}
    for item in inputs:
        if not item.dtype:
            made[item.name] = item.value
            continue
        dtype = getattr(torch, item.dtype.removeprefix("torch."))
        dense = torch.frombuffer(bytearray(base64.b64decode(item.data)), dtype=dtype).view(item.shape)
        extent = 1 + sum((n - 1) * s for n, s in zip(item.shape, item.stride, strict=True))
        memory = torch.zeros(extent, dtype=torch.uint8 if dtype.itemsize == 1 else dtype).view(dtype)
        made[item.name] = memory.as_strided(item.shape, item.stride)
        made[item.name].copy_(dense)
    return made
