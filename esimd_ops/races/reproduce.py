"""The smallest case that shows a finding, in a file: operator, sizes, inputs, schedule and seed; and back.

The file is JSON: everything that the case needs is in it, the inputs as the bytes of each tensor.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec

from schema_patch.model import ToolError

from .order import Order, Outcome

VERSION = 1


class Input(msgspec.Struct, frozen=True):
    """One argument: a number, or a tensor of this dtype, shape and stride with the bytes of its elements in order."""

    name: str
    value: int | float | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    data: str = ""  # base64


class Case(msgspec.Struct, frozen=True):
    """One call under one schedule."""

    version: int
    namespace: str
    operator: str
    sizes: str
    schedule: str
    name: str
    inputs: tuple[Input, ...]


def smallest(order: Order, outcome: Outcome) -> Case | None:
    """Of the rows with something wrong, the one with the fewest elements, under the first schedule that shows it."""
    import torch

    from esimd_ops import samples

    def size(inputs: samples.Arguments) -> int:
        return sum(value.numel() for value in inputs.values() if isinstance(value, torch.Tensor))

    cases = []
    for row in outcome.rows:
        shown = [name for name, (share, _) in row.wrong.items() if share] or (
            list(order.schedules)[:1] if row.seen else []
        )
        if not shown:
            continue
        sizes = next(s for s in samples.SIZES[row.op][1] if samples.label(s) == row.label)
        arguments = samples.make(row.op, sizes).arguments
        cases.append((size(arguments), row, shown[0], arguments))
    if not cases:
        return None
    _, row, name, arguments = min(cases, key=lambda case: case[0])
    inputs = tuple(_input(key, value) for key, value in arguments.items())
    return Case(VERSION, order.namespace, row.op, row.label, order.schedules[name], name, inputs)


def _input(name: str, value: object) -> Input:
    import torch

    if not isinstance(value, torch.Tensor):
        assert isinstance(value, int | float)
        return Input(name, value=value)
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
    import torch

    made: dict[str, Any] = {}
    for item in read(path).inputs:
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
