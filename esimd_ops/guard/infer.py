"""Finds out what an unknown operator does by running it once on arguments that the caller gives. Registers nothing.

A write shows only where it changes something: the caller poisons every buffer that the operator may write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from schema_patch.model import Effect
from schema_patch.schemas import grammar

from . import late
from .decide import GuardError

RUNS = 6  # results held at once: more than the rings of four buffers that libraries keep


def effects(
    namespaces: Collection[str], samples: Mapping[str, tuple[Any, ...]], skip: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str], Effect]:
    """The effect of each operator in `samples` (name, or namespace::name -> arguments). Raises GuardError."""
    found: dict[tuple[str, str], Effect] = {}
    for op, args in samples.items():
        space, _, name = op.rpartition("::")
        places = [
            n for n in ([space] if space else namespaces) if any(s.name == f"{n}::{name}" for s in late.registered(n))
        ]
        if not places:
            raise GuardError(f"infer: no operator {op} is registered in {', '.join(namespaces)}")
        for place in places:
            if (place, name) not in skip:
                found[place, name] = effect(getattr(getattr(torch.ops, place), name).default, args)
    return found


def effect(op: torch._ops.OpOverload, args: tuple[Any, ...]) -> Effect:
    """Runs the operator on copies of `args` and looks at every bit before and after."""
    parsed = grammar.parse(str(op._schema))
    names = [arg.name for arg in parsed.args]
    with torch.no_grad():
        copies = _copy(args)
        result = op(*copies)
        writes = tuple(name for name, old, new in zip(names, args, copies, strict=False) if not _same(old, new))
        results = result if isinstance(result, (tuple, list)) else (result,)
        back = [
            _which(value, dict(zip(names, copies, strict=False)), str(op))
            for value in results
            if isinstance(value, torch.Tensor)
        ]
        held = [op(*_copy(args)) for _ in range(RUNS)] if back and not any(back) else []
    if not back:
        returns = "nothing"
    elif len(set(back)) == 1 and back[0]:
        returns = back[0]
    elif not any(back):
        first = [value[0] if isinstance(value, (tuple, list)) else value for value in held]
        returns = (
            "fresh" if len({value.untyped_storage().data_ptr() for value in first}) == len(first) else "private buffer"
        )
    else:
        raise GuardError(
            f"infer: {op}: its results are {back}: one argument or new tensors can be guarded, a mixture cannot"
        )
    return Effect(parsed.op, writes, returns, "one run on the caller's samples")


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format)
    if isinstance(value, (tuple, list)):
        return type(value)(_copy(part) for part in value)
    return value


def _same(old: Any, new: Any) -> bool:
    """Bit for bit, so that NaN poison equals itself."""
    if isinstance(old, torch.Tensor):
        return old.shape == new.shape and torch.equal(*(t.contiguous().view(-1).view(torch.uint8) for t in (old, new)))
    if isinstance(old, (tuple, list)):
        return all(_same(a, b) for a, b in zip(old, new, strict=True))
    return True


def _which(value: torch.Tensor, arguments: dict[str, Any], op: str) -> str:
    """The argument that this result is, "" for none. Raises GuardError for a view of one."""
    for name, argument in arguments.items():
        if not isinstance(argument, torch.Tensor) or not value.numel():
            continue
        if value.untyped_storage().data_ptr() == argument.untyped_storage().data_ptr():
            if (
                value.data_ptr() == argument.data_ptr()
                and value.shape == argument.shape
                and value.stride() == argument.stride()
            ):
                return name
            raise GuardError(
                f"infer: {op} returns a view of its argument '{name}': that cannot be guarded; keep it out of the graph"
            )
    return ""
