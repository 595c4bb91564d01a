"""Puts one operator through every program and, where the device has graphs, through capture and replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from esimd_ops.registry import has_fake
from esimd_ops.tensors import tensors
from schema_patch.model import Effect

from . import graphs, programs, replay
from .programs import ProbedCall, ProbedProgram, with_tensors
from .question import ProgramSeen

# One compilation takes seconds; these are where buffers are reused and reads are moved.
INDUCTOR = ("buffer read", "both read", "two calls", "result kept")


def try_out(call: ProbedCall, other: ProbedCall | None, names: tuple[str, ...], device: str) -> list[ProgramSeen]:
    """Every program by AOTAutograd, some by Inductor, and graph replay with the inputs of `other`.

    names: the operator's, and its twin's where it has one.
    """
    moved = call.to(device)
    inputs = list(moved.tensors.values())
    seen: list[ProgramSeen] = []
    for name, program in programs.build(moved).items():
        expected = program(*[value.clone() for value in inputs])
        if not programs.same(expected, program(*[value.clone() for value in inputs])):
            seen.append(ProgramSeen(name, "functionalized", "not comparable", "two eager runs differ"))
            continue
        seen.append(_compiled(name, "functionalized", graphs.functionalized, program, inputs, names, expected))
        if name in INDUCTOR:
            seen.append(_compiled(name, "inductor", graphs.by_inductor, program, inputs, names, expected))
    if other is not None:
        outcome = replay.replayed(call, other, device)
        kind, _, detail = outcome.partition(":")
        kind = "refused" if kind == "cannot be captured" else kind
        seen.append(ProgramSeen("new inputs", "replay", kind, detail.strip()))
    return seen


def _compiled(
    name: str,
    stage: str,
    compile_with: Callable[[ProbedProgram, list[Tensor], tuple[str, ...]], graphs.CompiledProgram],
    program: ProbedProgram,
    inputs: list[Tensor],
    names: tuple[str, ...],
    expected: tuple[Tensor, ...],
) -> ProgramSeen:
    try:
        compiled = compile_with(program, inputs, names)
    except graphs.NotCompiled as error:
        return ProgramSeen(name, stage, "refused", str(error))
    if programs.same(expected, compiled.results):
        return ProgramSeen(name, stage, "right", f"{compiled.calls} calls in it")
    outcome = "wrong" if compiled.calls else "deleted"
    detail = "the call is in the graph" if compiled.calls else "no call of the operator is left in the graph"
    return ProgramSeen(name, stage, outcome, detail, compiled.text)


def make_call(op: torch._ops.OpOverload, arguments: dict[str, Any], effect: Effect) -> ProbedCall:
    """A call whose buffers do not already hold what the operator writes: a call that is deleted would not be missed."""
    call = ProbedCall(op, arguments, effect.writes, bool(op._schema.returns))
    after = {name: value.clone() for name, value in call.tensors.items()}
    call(after)
    fresh = {
        name: (value.float() * 0.5 + 1.25).to(value.dtype)
        for name, value in call.tensors.items()
        if name in call.written and value.is_floating_point() and torch.equal(value, after[name])
    }
    if not fresh:
        return call
    tensors = {**call.tensors, **fresh}
    return replace(call, arguments={name: with_tensors(name, value, tensors) for name, value in arguments.items()})


def stand_in(call: ProbedCall) -> bool:
    """Gives an operator without a fake one that knows the results of this call. Was there none?"""
    if has_fake(call.op.name()):
        return False
    given = list(tensors(call({name: value.clone() for name, value in call.tensors.items()})))
    several = len(call.op._schema.returns) > 1

    def fake(*_args: Any, **_kwargs: Any) -> Any:
        new = [torch.empty_strided(r.shape, r.stride(), dtype=r.dtype, device=r.device) for r in given]
        return (tuple(new) if several else new[0]) if new else None

    torch.library.register_fake(call.op.name(), fake)
    return True
