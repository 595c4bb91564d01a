"""Puts one operator through every program and, where the device has graphs, through capture and replay."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from schema_patch.model import Effect

from . import graphs, programs, replay
from .order import Seen
from .programs import Call, Program

INDUCTOR = (
    "buffer read",
    "both read",
    "two calls",
)  # one compilation takes seconds; these are where buffers are reused


def try_out(call: Call, other: Call | None, names: tuple[str, ...], device: str) -> list[Seen]:
    """Every program by AOTAutograd, some by Inductor, and graph replay with the inputs of `other`.

    names: the operator's, and its twin's where it has one.
    """
    inputs = [value.to(device) for value in call.tensors.values()]
    moved = Call(call.op, {n: v.to(device) if isinstance(v, Tensor) else v for n, v in call.arguments.items()},
                 call.writes, call.returns)  # fmt: skip
    seen: list[Seen] = []
    for name, program in programs.build(moved).items():
        expected = program(*[value.clone() for value in inputs])
        if not programs.same(expected, program(*[value.clone() for value in inputs])):
            seen.append(Seen(name, "functionalized", "not comparable", "two eager runs differ"))
            continue
        seen.append(_compiled(name, "functionalized", graphs.functionalized, program, inputs, names, expected))
        if name in INDUCTOR:
            seen.append(_compiled(name, "inductor", graphs.by_inductor, program, inputs, names, expected))
    if other is not None and replay.available(device):
        outcome = replay.replayed(call, other, device)
        kind, _, detail = outcome.partition(":")
        kind = "refused" if kind == "cannot be captured" else kind
        seen.append(Seen("new inputs", "replay", kind, detail.strip()))
    return seen


def _compiled(
    name: str,
    stage: str,
    compile_with: Callable[[Program, list[Tensor], tuple[str, ...]], graphs.Compiled],
    program: Program,
    inputs: list[Tensor],
    names: tuple[str, ...],
    expected: tuple[Tensor, ...],
) -> Seen:
    try:
        compiled = compile_with(program, inputs, names)
    except graphs.Refused as error:
        return Seen(name, stage, "refused", str(error))
    if programs.same(expected, compiled.results):
        return Seen(name, stage, "right", f"{compiled.calls} calls in it")
    outcome = "wrong" if compiled.calls else "deleted"
    detail = "the call is in the graph" if compiled.calls else "no call of the operator is left in the graph"
    return Seen(name, stage, outcome, detail, compiled.text)


def make_call(op: torch._ops.OpOverload, arguments: dict[str, object], effect: Effect) -> Call:
    return Call(op, arguments, effect.writes, bool(op._schema.returns))
