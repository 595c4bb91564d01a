"""What stands in an operator's place: asks this kit's operator, and the original where ours refuses the arguments.

Registered for BackendSelect, the dispatch key that every call passes right before a device's kernel, in inference mode
too; the original is what lies behind. It may be registered before the operator exists.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from schema_patch.schemas import table as tables

from .what import OURS

KEY = "BackendSelect"
BEHIND = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
DEVICES = {"cpu": "CPU", "xpu": "XPU"}  # of torch -> the dispatch key of its kernels


class Kernel:
    """One operator, `namespace::name`. `replaced` and `passed` count calls; `why` is the last reason to pass one on."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.replaced = self.passed = 0
        self.why = ""
        self._counting = threading.Lock()
        name = op.partition("::")[2]
        entry = tables.load().entries[name]
        self._arguments = entry.arguments
        self._returned = entry.arguments.index(entry.returns) if entry.returns in entry.arguments else None
        self._ours: Any = getattr(getattr(torch.ops, OURS), name).default
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        self._devices = {device for device, key in DEVICES.items() if has(f"{OURS}::{name}", key)}
        self._refusal = f"{name}: argument '"  # how every refusal of ours begins
        self._original: Any = None
        self._differs = ""

    def __call__(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        original = self._original or self._find()
        device = args[0].device.type if args else "meta"
        if device == "meta":  # torch asks for shapes; nothing is computed
            return original.redispatch(keyset & BEHIND, *args, **kwargs)
        why = self._differs or ("" if device in self._devices else f"no kernel of ours for {device}")
        if not why:
            try:
                self._ours(*args, **kwargs)
            except RuntimeError as error:
                if not str(error).startswith(self._refusal):
                    raise
                why = str(error).splitlines()[0]
            else:
                with self._counting:
                    self.replaced += 1
                return self._result(args, kwargs)
        with self._counting:
            self.passed += 1
            self.why = why
        return original.redispatch(keyset & BEHIND, *args, **kwargs)

    def _find(self) -> Any:
        """The operator, once it exists: it is being called."""
        namespace, _, name = self.op.partition("::")
        original = getattr(getattr(torch.ops, namespace), name).default
        arguments = tuple(argument.name for argument in original._schema.arguments)
        if arguments != self._arguments:
            self._differs = f"it has other arguments than ours: {', '.join(arguments)}"
        if not original._schema.returns:
            self._returned = None
        elif self._returned is None:
            self._differs = "it returns something, and ours nothing"
        self._original = original
        return original

    def _result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The argument that the operator hands back, where it returns anything."""
        if self._returned is None:
            return None
        return args[self._returned] if self._returned < len(args) else kwargs[self._arguments[self._returned]]
