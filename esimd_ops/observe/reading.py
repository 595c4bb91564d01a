"""The tensors of a call by the names of its schema, and the shape of the call. Runs nothing.

A list is named by its argument; a subclass of Tensor stands for the plain tensors that it is made of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

PLAIN = (Tensor, torch.nn.Parameter)
TRACED = "traced or transformed: no values yet"
_IN_KEY = (bool, str, torch.dtype, torch.device, torch.memory_format, torch.layout)


class NotWatched(Exception):
    """This call cannot be watched; the words say why, and are counted."""


def key(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What calls of one shape have in common: that of tensors, their types and order, flags and words; no numbers."""
    found = [_key(value) for value in args]
    if kwargs:
        found += [(name, _key(value)) for name, value in kwargs.items()]
    return tuple(found)


def _key(value: Any) -> Any:
    if isinstance(value, Tensor):
        try:
            return value.shape, value.dtype, value.is_contiguous()
        except RuntimeError:  # a nested tensor has none
            return type(value)
    if isinstance(value, (list, tuple)):
        return tuple(_key(part) for part in value)
    return value if isinstance(value, _IN_KEY) else None if value is None else type(value)


def named(names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name."""
    return {**dict(zip(names, args, strict=False)), **kwargs}


def tensors(value: Any) -> list[Tensor]:
    """The plain tensors in a value. Raises NotWatched for what has no memory of its own."""
    return list(_parts(value))


def _parts(value: Any) -> Iterator[Tensor]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    elif isinstance(value, dict):
        yield from _parts(list(value.values()))
    elif isinstance(value, Tensor):
        if value.is_meta or _is_fake(value) or _is_wrapped(value):
            raise NotWatched(TRACED)
        if type(value) not in PLAIN and is_traceable_wrapper_subclass(value):
            for name in value.__tensor_flatten__()[0]:
                yield from _parts(getattr(value, name))
        elif value.is_nested:
            yield _inner(value, "values")
        elif value.layout is not torch.strided:
            yield from (_inner(value, name) for name in _parts_of(value))
        elif type(value) not in PLAIN and not _has_memory(value):
            raise NotWatched(f"a {type(value).__name__}, whose memory is not known")
        else:
            yield value


def _parts_of(value: Tensor) -> Sequence[str]:
    """What a sparse tensor is made of; a layout that hides it has none that we could ask for."""
    if value.layout is torch.sparse_coo:
        return ("_indices", "_values")
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return ("crow_indices", "col_indices", "values")
    return ("ccol_indices", "row_indices", "values")


def _inner(value: Tensor, name: str) -> Tensor:
    try:
        found: Tensor = getattr(value, name)()
    except RuntimeError as error:
        layout = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        raise NotWatched(f"a tensor of layout {layout}") from error
    return found


def size(value: Any) -> int:
    """The bytes of all storages in a value; 0 where it cannot be watched."""
    try:
        storages = {storage._cdata: storage for storage in (tensor.untyped_storage() for tensor in _parts(value))}
    except NotWatched:
        return 0
    return sum(storage.nbytes() for storage in storages.values())


def _has_memory(value: Tensor) -> bool:
    try:
        return value.untyped_storage().data_ptr() >= 0
    except RuntimeError:
        return False


def _is_fake(value: Tensor) -> bool:
    """It says that it lies on a device, and has no memory. Torch's module for them is slow to import."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return type(value) not in PLAIN and fake is not None and isinstance(value, fake.FakeTensor)


def _is_wrapped(value: Tensor) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(value)) or torch._is_functional_tensor(value)


def shapes(values: dict[str, Any]) -> str:
    """The tensors of a call as a person reads them: `x[4, 8] float32, outs[2]`."""
    return ", ".join(word for name, value in values.items() if (word := _shape(name, value)))


def _shape(name: str, value: Any) -> str:
    if isinstance(value, Tensor) and value.is_nested:
        return f"{name} nested"
    if isinstance(value, Tensor):
        return f"{name}{list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (list, tuple)) and any(isinstance(part, Tensor) for part in value):
        return f"{name}: {len(value)} tensors"
    return f"{name}={value}" if isinstance(value, (bool, str)) else ""
