"""enable, disable and status: which operators have been replaced, and how many calls."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from esimd_ops import environment, native
from schema_patch.schemas import table

from . import what

_lock = threading.RLock()
_placed: dict[str, Any] = {}  # by operator: what stands in its place (csrc/replacement.h)


@dataclass(frozen=True)
class Replaced:
    """One operator in whose place ours stands: calls that ours made, and those passed on to the original, with the last
    reason."""

    op: str
    calls: int
    passed: int
    why: str

    def __str__(self) -> str:
        because = f" ({self.why})" if self.why else ""
        return f"{self.op}: replaced: {self.calls} calls, {self.passed} passed on to the original{because}"


def enable(words: str | Iterable[str] | None = None) -> tuple[Replaced, ...]:
    """Put our operators in the place of those named: "races", "op", "ns::op", or several of them; now or when loaded.

    By default those of SCHEMA_KIT_REPLACE. May be called again. Raises ReplaceError for a name that is none of ours,
    and where our own operators are not built.
    """
    meant = what.resolve(environment.replaced_operators() if words is None else words)
    try:
        if meant:
            native.load()
    except (ImportError, OSError) as error:
        raise what.ReplaceError(f"replace: {error}") from error
    with _lock:
        for op in meant:
            if op not in _placed:
                _placed[op] = _place(op)
        return status()


def _place(op: str) -> Any:
    name = op.partition("::")[2]
    entry = table.load().entries[name]
    returned = entry.arguments.index(entry.returns) if entry.returns in entry.arguments else -1
    return native.load().Replacement(op, f"{what.OURS}::{name}", returned)


def disable() -> tuple[str, ...]:
    """Gives every operator its own kernels back. Returns the operators concerned."""
    with _lock:
        undone = tuple(_placed)
        for placed in _placed.values():
            placed.remove()
        _placed.clear()
        return undone


def names() -> tuple[str, ...]:
    """The operators in whose place ours are put, now or when they are loaded."""
    with _lock:
        return tuple(_placed)


def status() -> tuple[Replaced, ...]:
    """The operators in whose place ours stand, of those that exist by now, and the calls so far."""
    with _lock:
        return tuple(
            Replaced(op, placed.replaced, placed.passed, placed.why)
            for op, placed in sorted(_placed.items())
            if _exists(op)
        )


def _exists(op: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(op))
