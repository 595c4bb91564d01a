"""The shapes of program in which an untrue schema shows: functions of the operator's tensors that return tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from esimd_ops.tensors import same_bits

ProbedProgram = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True)
class ProbedCall:
    """One operator, the arguments of one call of it, and which of them it writes."""

    op: Any  # torch._ops.OpOverload
    arguments: Mapping[str, Any]
    writes: tuple[str, ...]
    returns: bool

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that is passed: those of a list as name[0], name[1] and so on."""
        found: dict[str, Tensor] = {}
        for name, value in self.arguments.items():
            if isinstance(value, Tensor):
                found[name] = value
            elif isinstance(value, (tuple, list)):
                found |= {f"{name}[{i}]": part for i, part in enumerate(value) if isinstance(part, Tensor)}
        return found

    @property
    def written(self) -> tuple[str, ...]:
        """Those of `tensors` that are written; an optional output may be left out."""
        return tuple(name for name in self.tensors if name.partition("[")[0] in self.writes)

    def __call__(self, tensors: Mapping[str, Tensor]) -> Any:
        return self.op(**{name: with_tensors(name, value, tensors) for name, value in self.arguments.items()})

    def to(self, device: str) -> ProbedCall:
        """The same call with its tensors on a device."""
        moved = {name: value.to(device) for name, value in self.tensors.items()}
        return replace(self, arguments={n: with_tensors(n, value, moved) for n, value in self.arguments.items()})


def with_tensors(name: str, value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, (tuple, list)):
        return [tensors.get(f"{name}[{i}]", part) for i, part in enumerate(value)]
    return tensors.get(name, value)


def results(returned: Any) -> list[Tensor]:
    """The tensors among what an operator returned. A list, for this is traced: torch 2.7 traces no generator."""
    if isinstance(returned, (tuple, list)):
        return [tensor for part in returned for tensor in results(part)]
    return [returned] if isinstance(returned, Tensor) else []


class Shapes:
    """Every shape for one operator. Each takes the tensors of `call.tensors` in order.

    Buffers are made inside the program, from the poison that the caller passes for them, so that a compiler may reuse
    or forget them as it would in a model.
    """

    def __init__(self, call: ProbedCall) -> None:
        self._call, self._names, self._written = call, list(call.tensors), call.written
        read = (name for name in self._names if name not in self._written)
        self._varied = next((name for name in read if call.tensors[name].is_floating_point()), None)

    def _made(self, values: tuple[Tensor, ...]) -> tuple[dict[str, Tensor], list[Tensor]]:
        tensors = dict(zip(self._names, values, strict=True))
        tensors.update({name: tensors[name].clone() for name in self._written})
        return tensors, [tensors[name] for name in self._written]

    def buffer_read(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = self._made(values)
        self._call(tensors)
        return tuple(buffer + 1 for buffer in buffers)

    def return_read(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, _ = self._made(values)
        return tuple(result + 1 for result in results(self._call(tensors)))

    def both_read(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = self._made(values)
        returned = tuple(result * 2 for result in results(self._call(tensors)))
        return (*returned, *(buffer + 1 for buffer in buffers))

    def result_kept(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Reads the first result before the second call; a compiler that takes it for new may read it after."""
        tensors, _ = self._made(values)
        first = [result * 2 for result in results(self._call(tensors))]
        again, _ = self._made(values)
        if self._varied:
            again[self._varied] = again[self._varied] * 0.5
        second = results(self._call(again))
        return tuple(a + b for a, b in zip(first, second, strict=True))

    def buffer_is_a_view(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, _ = self._made(values)
        bases = {name: torch.stack((tensors[name], tensors[name])) for name in self._written}
        tensors.update({name: base[1] for name, base in bases.items()})
        self._call(tensors)
        return tuple(base + 1 for base in bases.values())

    def two_calls(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = self._made(values)
        self._call(tensors)
        first = tuple(buffer + 1 for buffer in buffers)
        self._call(tensors)
        return (*first, *(buffer + 2 for buffer in buffers))

    def later_in_place(self, *values: Tensor) -> tuple[Tensor, ...]:
        tensors, buffers = self._made(values)
        self._call(tensors)
        for buffer in buffers:
            buffer.add_(1)
        return tuple(buffers)


def build(call: ProbedCall) -> dict[str, ProbedProgram]:
    """Every program that fits the operator, by name."""
    shapes = Shapes(call)
    programs: dict[str, ProbedProgram] = {}
    if call.written:
        programs = {"buffer read": shapes.buffer_read, "buffer is a view": shapes.buffer_is_a_view,
                    "two calls": shapes.two_calls, "later in-place": shapes.later_in_place}  # fmt: skip
    if call.returns:
        programs |= {"return read": shapes.return_read, "result kept": shapes.result_kept}
    if call.returns and call.written:
        programs |= {"both read": shapes.both_read}
    return programs


def same(expected: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> bool:
    """Equal bit for bit, NaN to NaN, or within the rounding that a compiler may leave out by fusing the last `+ 1`."""
    return all(
        same_bits(a, b) or torch.allclose(a.float(), b.float(), rtol=2e-3, atol=2e-3, equal_nan=True)
        for a, b in zip(expected, found, strict=True)
    )
