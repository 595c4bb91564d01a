"""What autograd is told of eager calls: that an operator writes, and that it has no derivative. Decides nothing.

As torch's own in-place operators do, an operator raises the version of what it writes, so that a backward() which needs
the values from before is an error instead of a wrong gradient; and an argument that requires grad is refused where no
gradient could come of it. In C++ alone (csrc/autograd.cpp): eager calls are not to cost more. Without the extension
torch's own fallback is kept from what is handed back: it would take the buffer for a new result, and give it a history,
which only what is new beside it is to have.
An operator with an autograd kernel of its own is left to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from esimd_ops.registry import overload
from esimd_ops.tensors import tensors
from schema_patch.model import is_argument

from .decide import Action, Decision
from .twins import built

DEVICES = ("CPU", "CUDA", "XPU", "PrivateUse1")
_placed: dict[str, Any] = {}  # by operator: what is registered as long as it lives


def install(decision: Decision) -> None:
    """Makes it hold for this operator; does nothing where nothing is known to be written."""
    if not decision.writes or decision.action is Action.UNKNOWN or is_differentiated(decision.op):
        return
    composite = _has(decision.op, "CompositeImplicitAutograd")
    extension = built()
    if extension is not None:
        written = [index for index, arg in enumerate(decision.schema.args) if arg.name in decision.writes]
        _placed[decision.op] = extension.give_versions(decision.op, written, composite)
    elif any(map(is_argument, decision.results)) and not composite:
        namespace, _, name = decision.op.partition("::")
        _placed[decision.op] = torch.library.Library(namespace, "IMPL")
        if all(map(is_argument, decision.results)):
            _placed[decision.op].impl(name, torch.library.fallthrough_kernel, "Autograd")
        else:
            _placed[decision.op].impl(name, _with_history(decision), "Autograd", with_keyset=True)


def uninstall(op: str) -> None:
    placed = _placed.pop(op, None)
    if isinstance(placed, torch.library.Library):
        placed._destroy()


def _with_history(decision: Decision) -> Callable[..., Any]:
    op, new = overload(decision.op), [not is_argument(result) for result in decision.results]

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        found = op.redispatch(keys & torch._C._after_autograd_keyset, *args, **kwargs)
        traced = keys.has(torch._C.DispatchKey.Python)  # the twin has the true schema
        if (
            traced
            or not torch.is_grad_enabled()
            or not any(t.requires_grad for t in tensors((*args, *kwargs.values())))
        ):
            return found

        def given(part: Any, is_new: bool) -> Any:
            plain = is_new and isinstance(part, torch.Tensor) and not part.requires_grad
            return underived(lambda: part) if plain else part

        return tuple(given(part, is_new) for part, is_new in zip(found, new, strict=True))

    return kernel


class _Underived(torch.autograd.Function):
    """A history without a gradient. Its leaf stands for the arguments, whose own it may not ask for here."""

    @staticmethod
    def forward(_: Any, make: Callable[[], Any], _leaf: torch.Tensor) -> Any:
        return make()

    @staticmethod
    def backward(_: Any, *_gradients: Any) -> Any:
        return None, None


def underived(make: Callable[[], Any]) -> Any:
    """What `make` gives, as of an operator without a derivative whose arguments require grad."""
    apply: Any = _Underived.apply
    return apply(make, torch.empty(0, requires_grad=True))


def is_differentiated(op: str) -> bool:
    """The operator has an autograd kernel of its own."""
    return _has(op, "Autograd", *(f"Autograd{device}" for device in DEVICES))


def _has(op: str, *keys: str) -> bool:
    known = torch._C._dispatch_has_kernel(op)  # TorchScript has operators that the dispatcher has not
    return known and any(torch._C._dispatch_has_kernel_for_dispatch_key(op, key) for key in keys)
