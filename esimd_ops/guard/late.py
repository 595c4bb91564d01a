"""Operators that are loaded after the guard: watches for them, without knowing what is to be done.

Python reaches an operator through its namespace (`torch.ops.mylib.op`), which binds it at first use. That is the moment
at which it surely exists and has not been traced yet, however its library was loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import _OpNamespace

Notify = Callable[[str], object]

_watched: dict[str, Notify] = {}
_within = threading.local()
_bind: Any = _OpNamespace.__getattr__


def watch(namespace: str, found: Notify) -> None:
    """Calls found(namespace) whenever an operator of this namespace is bound for the first time."""
    _watched[namespace] = found
    _OpNamespace.__getattr__ = _binding  # type: ignore[method-assign]


def unwatch(namespace: str) -> None:
    _watched.pop(namespace, None)
    if not _watched:
        _OpNamespace.__getattr__ = _bind  # type: ignore[method-assign]


@contextmanager
def paused() -> Iterator[None]:
    """In this thread nothing is found meanwhile."""
    before = getattr(_within, "paused", False)
    _within.paused = True
    try:
        yield
    finally:
        _within.paused = before


def _binding(self: Any, name: str) -> Any:
    packet = _bind(self, name)
    found = _watched.get(self.name)
    if found is not None and not getattr(_within, "paused", False):
        found(self.name)
    return packet


def registered(namespace: str) -> list[Any]:
    """The schemas of a namespace that are registered now. `dir(torch.ops.mylib)` lists only those already bound."""
    return [s for s in torch._C._jit_get_all_schemas() if s.name.startswith(f"{namespace}::")]
