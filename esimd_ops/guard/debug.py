"""Compares a compiled program with the eager one, guarded call by guarded call, and names the first that differs.

Meanwhile every guarded operator is traced as a twin in Python that records what it is given and what it makes of it;
eager calls are recorded as they are dispatched. Calls of one operator are matched in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from esimd_ops.tensors import copied
from schema_patch.model import is_argument

from . import api, rules, twins
from .decide import Decision


@dataclass(frozen=True)
class Recorded:
    """One call: what was given, and the written arguments and results afterwards; all of them copies."""

    op: str
    given: dict[str, Any]
    made: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """The first guarded call that is not the same: which of the operator's calls, in what, and by how much."""

    op: str
    call: int  # of this operator, from 1
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.op}, call {self.call}: {self.where}: {self.detail}"


def first_difference(
    program: Callable[..., Any], *args: Any, backend: str = "inductor", rtol: float = 1e-3, atol: float = 1e-5
) -> Difference | None:
    """Runs `program(*args)` eager and compiled, on copies of its arguments; None where every guarded call agrees.

    A call that differs in what it is given was reached by a difference before it: by something that the guard does not
    see. One that is given the same and makes something else is the culprit itself.
    """
    eager: list[Recorded] = []
    compiled: list[Recorded] = []
    guarded = {d.op: d for d in api.status().guarded}
    with _Eager(guarded, eager):
        program(*copied(args))
    with _recording_twins(guarded, compiled):
        torch.compile(program, backend=backend)(*copied(args))
    for op, pair, number in _matched(eager, compiled):
        if pair is None:
            missing = "compiled" if sum(r.op == op for r in eager) >= number else "eager"
            return Difference(op, number, "the call", f"does not happen in the {missing} program")
        for where in ("given", "made"):
            for name, value in getattr(pair[0], where).items():
                if detail := _differs(value, getattr(pair[1], where).get(name), rtol, atol):
                    return Difference(op, number, f"{name}, {where}", detail)
    return None


class _Eager(TorchDispatchMode):
    def __init__(self, guarded: dict[str, Decision], into: list[Recorded]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.guarded, self.into = guarded, into

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        decision = self.guarded.get(func.name())
        if decision is None:
            return func(*args, **(kwargs or {}))
        return _recorded(decision, func, args, kwargs or {}, self.into)


@contextmanager
def _recording_twins(guarded: dict[str, Decision], into: list[Recorded]) -> Iterator[None]:
    """Twins of another name for the time: a cached graph holds the ordinary ones."""

    def watching(decision: Decision, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _recorded(decision, call, args, kwargs, into)

    torch._dynamo.reset()
    with twins.watched(watching), torch._inductor.config.patch(force_disable_caches=True):
        for op, decision in guarded.items():
            rules.uninstall(op)
            rules.install(decision)
        try:
            yield
        finally:
            torch._dynamo.reset()
    for op, decision in guarded.items():
        rules.uninstall(op)
        rules.install(decision)


def _recorded(decision: Decision, call: Any, args: Any, kwargs: Any, into: list[Recorded]) -> Any:
    reader = rules.TracedCall(decision)
    names = [arg.name for arg in decision.schema.args]
    given = {name: copied(reader.argument(name, args, kwargs)) for name in names}
    result = call(*args, **kwargs)
    made = {name: copied(reader.argument(name, args, kwargs)) for name in decision.writes}
    parts = result if isinstance(result, (tuple, list)) else (result,)
    if len(parts) == len(decision.results):  # of the operator itself; a twin gives what is new
        parts = [part for part, kind in zip(parts, decision.results, strict=True) if not is_argument(kind)]
    made |= {f"result {index}": copied(part) for index, part in enumerate(parts)}
    into.append(Recorded(decision.op, given, made))
    return result


def _matched(eager: list[Recorded], compiled: list[Recorded]) -> Iterator[tuple[str, Any, int]]:
    """Pairs of calls in the order of the eager program; None for a call without a partner."""
    counts: dict[str, int] = {}
    for call in eager:
        counts[call.op] = number = counts.get(call.op, 0) + 1
        partners = [other for other in compiled if other.op == call.op]
        yield call.op, (call, partners[number - 1]) if number <= len(partners) else None, number
    for op in dict.fromkeys(call.op for call in compiled):
        if sum(call.op == op for call in compiled) > counts.get(op, 0):
            yield op, None, counts.get(op, 0) + 1


def _differs(eager: Any, compiled: Any, rtol: float, atol: float) -> str:
    if isinstance(eager, (tuple, list)):
        pairs = zip(eager, compiled, strict=False)
        return next((found for a, b in pairs if (found := _differs(a, b, rtol, atol))), "")
    if not isinstance(eager, torch.Tensor):
        return "" if eager == compiled else f"eager {eager}, compiled {compiled}"
    if eager.shape != compiled.shape:
        return f"eager of shape {tuple(eager.shape)}, compiled {tuple(compiled.shape)}"
    a, b = eager.float(), compiled.float()
    if torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    return f"largest difference {(a - b).abs().nan_to_num(float('inf')).max().item():.6g}"
