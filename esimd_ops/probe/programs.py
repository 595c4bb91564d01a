"""The shapes of program in which an untrue schema shows: functions of the operator's tensors that return tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Program = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True)
class Call:
    """One operator, the arguments of one call of it, and which of them it writes."""

    op: Any  # torch._ops.OpOverload
    arguments: Mapping[str, Any]
    writes: tuple[str, ...]
    returns: bool

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in self.arguments.items() if isinstance(value, Tensor)}

    def __call__(self, tensors: Mapping[str, Tensor]) -> Any:
        return self.op(*(tensors.get(name, value) for name, value in self.arguments.items()))


def build(call: Call) -> dict[str, Program]:
    """Every program that fits the operator, by name. Each takes the tensors of `call.tensors` in order.

    Buffers are made inside the program, from the poison that the caller passes for them, so that a compiler may reuse
    or forget them as it would in a model.
    """
    names = list(call.tensors)

    def named(values: tuple[Tensor, ...]) -> tuple[dict[str, Tensor], list[Tensor]]:
        tensors = dict(zip(names, values, strict=True))
        tensors.update({name: tensors[name].clone() for name in call.writes})
        return tensors, [tensors[name] for name in call.writes]

    def buffer_read(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = named(values)
        call(tensors)
        return tuple(buffer + 1 for buffer in buffers)

    def return_read(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, _ = named(values)
        return (call(tensors) + 1,)

    def both_read(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = named(values)
        result = call(tensors)
        return (result * 2, *(buffer + 1 for buffer in buffers))

    def buffer_is_a_view(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, _ = named(values)
        bases = {name: torch.stack((tensors[name], tensors[name])) for name in call.writes}
        tensors.update({name: base[1] for name, base in bases.items()})
        call(tensors)
        return tuple(base + 1 for base in bases.values())

    def two_calls(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = named(values)
        call(tensors)
        first = tuple(buffer + 1 for buffer in buffers)
        call(tensors)
        return (*first, *(buffer + 2 for buffer in buffers))

    def later_in_place(*values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = named(values)
        call(tensors)
        for buffer in buffers:
            buffer.add_(1)
        return tuple(buffers)

    programs: dict[str, Program] = {"buffer read": buffer_read, "buffer is a view": buffer_is_a_view,
                                    "two calls": two_calls, "later in-place": later_in_place}  # fmt: skip
    if call.returns:
        programs |= {"return read": return_read, "both read": both_read}
    return programs


def same(expected: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> bool:
    """Equal bit for bit, NaN to NaN, or within the rounding that a compiler may leave out by fusing the last `+ 1`."""
    return all(
        torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))
        or torch.allclose(a.float(), b.float(), rtol=2e-3, atol=2e-3, equal_nan=True)
        for a, b in zip(expected, found, strict=True)
    )
