"""What autograd is told of eager calls: that an operator writes, and that it has no derivative. Decides nothing.

As torch's own in-place operators do, an operator raises the version of what it writes, so that a backward() which needs
the values from before is an error instead of a wrong gradient; and an argument that requires grad is refused where no
gradient could come of it. In C++ alone (csrc/autograd.cpp): eager calls are not to cost more. An operator with an
autograd kernel of its own is left to that.
"""

from __future__ import annotations

from typing import Any

import torch

from .decide import Action, Decision
from .twins import built

DEVICES = ("CPU", "CUDA", "XPU", "PrivateUse1")
_placed: dict[str, Any] = {}  # by operator: what is registered as long as it lives


def install(decision: Decision) -> None:
    """Makes it hold for this operator; does nothing where nothing is known to be written."""
    extension = built()
    keys = ("Autograd", *(f"Autograd{device}" for device in DEVICES))
    if not decision.writes or decision.action is Action.UNKNOWN or extension is None or _has(decision.op, *keys):
        return
    written = [index for index, arg in enumerate(decision.schema.args) if arg.name in decision.writes]
    composite = _has(decision.op, "CompositeImplicitAutograd")
    _placed[decision.op] = extension.give_versions(decision.op, written, composite)


def uninstall(op: str) -> None:
    _placed.pop(op, None)


def _has(op: str, *keys: str) -> bool:
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(op, key) for key in keys)
