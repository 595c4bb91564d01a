"""Keeps the right fake of a guarded operator in place, whoever registers another and whenever.

torch 2.7 refuses a second fake, 2.11 raises, 2.13 lets the last one win; an inference server registers its own when a
model is imported. So the fake is put into torch's registry directly, and registrations for guarded operators are turned
away from then on. Knows that registry's shape in each version; no other file does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch._library.simple_registry import singleton as registry
from torch._library.utils import Kernel

log = logging.getLogger(__name__)

Fake = Callable[..., Any]

_right: dict[str, Fake] = {}
_placed: dict[str, Any] = {}  # by operator: how to take our fake out again
_register_fake = torch.library.Library._register_fake


def install(op: str, fake: Fake) -> None:
    """Makes `fake` the one that counts."""
    if op in _right:
        remove(op)
    holder = registry.find(op).fake_impl
    kernel = Kernel(fake, "esimd_ops.guard")
    if hasattr(holder, "kernels"):  # from 2.13: the last of the list counts, and its owners take theirs out themselves
        holder.kernels.append(kernel)
        _placed[op] = kernel
    else:
        _placed[op] = holder.kernel
        holder.kernel = kernel
    _right[op] = fake
    torch.library.Library._register_fake = _turn_away  # type: ignore[method-assign]
    _forget_cached()


def remove(op: str) -> None:
    """Puts back what `install` found."""
    holder, placed = registry.find(op).fake_impl, _placed.pop(op)
    if hasattr(holder, "kernels"):
        holder.kernels.remove(placed)
    else:
        holder.kernel = placed
    del _right[op]
    if not _right:
        torch.library.Library._register_fake = _register_fake  # type: ignore[method-assign]
    _forget_cached()


def is_ours(op: str) -> bool:
    return op in _right


def existing(op: str) -> str:
    """What torch would use for the operator on fake tensors."""
    entry = registry._data.get(op)
    if entry is not None and entry.fake_impl.kernel is not None:
        return "a fake"
    for key in ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
        if torch._C._dispatch_has_kernel_for_dispatch_key(op, key):
            return f"a {key} kernel"
    return "none"


def _turn_away(self: torch.library.Library, op_name: str, fn: Fake, *args: Any, **kwargs: Any) -> Any:
    op = op_name if "::" in op_name else f"{self.ns}::{op_name}"
    if op in _right:
        log.info("the fake registered for %s is not used: the guard has the right one", op)
        return None
    return _register_fake(self, op_name, fn, *args, **kwargs)


def _forget_cached() -> None:
    """FakeTensorMode remembers results by operator and inputs."""
    torch._subclasses.fake_tensor.FakeTensorMode.cache_clear()
