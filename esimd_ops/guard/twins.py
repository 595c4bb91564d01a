"""Twins: operators with a true schema, each of which calls the operator that it stands for. Decides nothing.

A twin is named by what it declares, so that none is ever changed: a compiled graph that calls one keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from esimd_ops import native
from esimd_ops.registry import overload
from schema_patch.model import buffers_kept, is_argument

from .decide import TWINS, Decision

_library = torch.library.Library(TWINS, "FRAGMENT")
Watching = Callable[[Decision, Callable[..., Any]], Callable[..., Any]]
_watcher: list[Watching] = []


def twin_of(decision: Decision) -> torch._ops.OpOverload:
    """The twin of this decision, registered where it is not yet."""
    schema = decision.twin_schema
    assert schema is not None, f"{decision.op} has no twin"
    name = schema.name + ("_watched" if _watcher else "")
    if not torch._C._dispatch_has_kernel(name):
        op = overload(decision.op)
        fates = ["DROP" if is_argument(r) else "CLONE" if buffers_kept(r) else "KEEP" for r in decision.results]
        _library.define(str(replace(schema, name=name)).partition("::")[2], tags=_tags(op))
        _implement(name, decision, op, fates)
        torch.library.register_fake(name, _fake(op, fates), lib=_library)
    return overload(name)


def _tags(op: torch._ops.OpOverload) -> tuple[torch.Tag, ...]:
    """Those of the operator, without what tells of its results: its twin has others."""
    return tuple(tag for tag in op.tags if tag.name not in ("out", "inplace", "inplace_view"))


def _implement(name: str, decision: Decision, op: torch._ops.OpOverload, fates: list[str]) -> None:
    extension = built()
    if _watcher:

        def call(*args: Any, **kwargs: Any) -> Any:
            plain = calls(op, fates)
            return (_watcher[0](decision, plain) if _watcher else plain)(*args, **kwargs)

        _library.impl(name.partition("::")[2], call, "CompositeExplicitAutograd")
    elif extension is not None:
        results = [getattr(extension.Result, fate) for fate in fates]
        extension.implement_twin(name, op._schema.name, op._schema.overload_name, results)
    else:
        _library.impl(name.partition("::")[2], calls(op, fates), "CompositeExplicitAutograd")


@contextmanager
def watched(watcher: Watching) -> Iterator[None]:
    """Twins traced meanwhile are others, in Python; each of their calls goes through what `watcher` makes of it."""
    _watcher.append(watcher)
    try:
        yield
    finally:
        _watcher.clear()


def built() -> Any:
    """The built extension, whose twins cost a tenth of those in Python; None where there is none, or it cannot load."""
    try:
        return native.load()
    except (ImportError, OSError):
        return None


def calls(op: torch._ops.OpOverload, fates: list[str]) -> Callable[..., Any]:
    """The twin in Python: calls `op`, and gives what is not dropped of its results."""
    run = op._op  # what a call of it does, without the call
    if not any(fate != "DROP" for fate in fates):

        def call(*args: Any) -> None:
            run(*args)

        def call_by_name(*args: Any, **kwargs: Any) -> None:  # slower by making and unpacking a dict
            run(*args, **kwargs)

        return call_by_name if any(argument.kwarg_only for argument in op._schema.arguments) else call

    def call_and_keep(*args: Any, **kwargs: Any) -> Any:
        result = run(*args, **kwargs)
        kept = [
            part.clone() if fate == "CLONE" else part
            for part, fate in zip(result if len(fates) > 1 else (result,), fates, strict=True)
            if fate != "DROP"
        ]
        return kept[0] if len(kept) == 1 else tuple(kept)

    return call_and_keep


def _fake(op: torch._ops.OpOverload, fates: list[str]) -> Callable[..., Any]:
    """Only the operator's own fake knows the shape of a new result."""
    kept = calls(op, ["KEEP" if fate == "CLONE" else fate for fate in fates])
    return (lambda *_, **__: None) if all(fate == "DROP" for fate in fates) else kept
