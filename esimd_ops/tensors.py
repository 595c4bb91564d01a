"""Values that hold tensors: which these are, copies of them, how far they reach, and their bits. Knows no operators."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the size of an element


def tensors(value: Any) -> Iterator[Tensor]:
    """Those of a value, of lists in lists too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors(part)


def copied(value: Any) -> Any:
    """The value with new tensors, which have no history."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return type(value)(copied(part) for part in value) if isinstance(value, tuple | list) else value


def reach(tensor: Tensor) -> int:
    """Elements from its first to its last in memory, with those between that are not its own."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((n - 1) * step for n, step in steps) if tensor.numel() else 0


def raw(tensor: Tensor) -> Tensor:
    """Its bytes in the order of its elements, in a row."""
    return tensor.detach().contiguous().view(-1).view(torch.uint8)


def bits(tensor: Tensor) -> Tensor:
    """The same elements as integers, dense, so that NaN equals NaN and -0 differs from 0."""
    dense = tensor.detach().contiguous()
    return dense.view(INTEGERS[dense.element_size()])


def same_bits(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(raw(one), raw(other))


def digest(tensor: Tensor) -> str:
    """SHA-256 of the elements in order."""
    dense = tensor.detach().cpu().contiguous()
    return hashlib.sha256(ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size())).hexdigest()
