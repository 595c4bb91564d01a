"""Calls with their arguments, as files that `probe`, `check` and `races` take for samples (docs/samples.md).

DIR/namespace.op.overload.N.pt   {"operator": …, "arguments": {name: value}}, written by torch.save
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from . import memory

LARGEST = 256 << 20  # bytes of one call
PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class Folder:
    """Where calls go. `left_out`: operators with a call that could not be saved, and why."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: dict[str, str] = {}

    def save(self, op: OpOverload[..., Any], values: dict[str, Any]) -> Callable[[], None]:
        """Copies a call before it is made; what comes of it keeps the copy. Nothing is kept twice, by any process."""
        if not is_plain(values):
            return lambda: None
        if why := _unsaved(values):
            self.left_out[op.name()] = why
            return lambda: None
        with memory.aside():
            arguments = copied(values)
            stream = io.BytesIO()
            torch.save({"operator": op.name(), "arguments": arguments}, stream)
        return partial(self._keep, op.name(), stream.getvalue())

    def _keep(self, op: str, data: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        name = f"{op.replace('::', '.')}.{hashlib.sha256(data).hexdigest()[:12]}.pt"
        if not (self.path / name).exists():
            new = self.path / f".{name}.new"
            new.write_bytes(data)
            new.replace(self.path / name)


def is_plain(values: dict[str, Any]) -> bool:
    """Its tensors hold values, and no more than a plain tensor does: no call that is traced."""
    tensors = [part for part in _flat(list(values.values())) if isinstance(part, Tensor)]
    kinds = (Tensor, torch.nn.Parameter)
    return all(type(t) in kinds and not t.is_meta and t.layout is torch.strided and not t.is_nested for t in tensors)


def _unsaved(values: dict[str, Any]) -> str:
    parts = _flat(list(values.values()))
    strange = next((type(part).__name__ for part in parts if not isinstance(part, (Tensor, *PLAIN))), "")
    size = sum(part.untyped_storage().nbytes() for part in parts if isinstance(part, Tensor))
    return f"an argument of type {strange}" if strange else f"{size} bytes" if size > LARGEST else ""


def _flat(values: list[Any]) -> list[Any]:
    return [part for value in values for part in (_flat(list(value)) if isinstance(value, (list, tuple)) else [value])]


def copied(values: dict[str, Any], *, on_cpu: bool = True) -> dict[str, Any]:
    """Copies of the arguments; tensors that share a storage do so again. They need a gradient where those do."""
    storages: dict[int, torch.UntypedStorage] = {}

    def copy(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [copy(part) for part in value]
        if not isinstance(value, Tensor):
            return value
        own = value.untyped_storage()
        if own._cdata not in storages:
            storages[own._cdata] = own.cpu() if on_cpu and own.device.type != "cpu" else own.clone()
        found = torch.empty(0, dtype=value.dtype, device=storages[own._cdata].device)
        found.set_(storages[own._cdata], value.storage_offset(), value.shape, value.stride())
        found = found.conj() if value.is_conj() else found
        found = torch._neg_view(found) if value.is_neg() else found
        return found.requires_grad_(value.requires_grad)

    return {name: copy(value) for name, value in values.items()}
