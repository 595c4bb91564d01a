"""The bodies of the typed functions, which all do the same: call the operator, hand back the buffer of the table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

from schema_patch.schemas import table

P = ParamSpec("P")
R = TypeVar("R")


def operator(declared: Callable[P, R]) -> Callable[P, R]:
    """A function that calls the operator of that name and returns the argument that the original library returns.

    The name, arguments and types of `declared` are the operator's own: csrc/registration.py makes its schema of them.
    """
    return _calling(declared.__name__, declared, declared.__doc__)


def like(other: Callable[P, R]) -> Callable[[Callable[[], R]], Callable[P, R]]:
    """The same for an operator with the arguments of another, which its own function leaves out."""
    return lambda declared: _calling(declared.__name__, other, declared.__doc__)


def _calling(name: str, declared: Callable[P, R], words: str | None) -> Callable[P, R]:
    entry = table.load().entries[name]
    returned = entry.returns
    place = entry.arguments.index(returned) if returned in entry.arguments else None

    @functools.wraps(declared)
    def call(*args: Any, **kwargs: Any) -> Any:
        getattr(torch.ops.esimd_ops, name)(*args, **kwargs)
        if place is None:
            return None
        return args[place] if place < len(args) else kwargs[returned]

    call.__name__, call.__doc__ = name, words
    return call
