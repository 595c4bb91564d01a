"""Tensors between sentinels: what an operator writes, and where, seen from the memory itself. Knows no operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from esimd_ops.tensors import INTEGERS, reach

GUARD_BYTES = 8192  # on either side; a multiple of every alignment that kernels ask for

# Read by mistake, a sentinel shows: NaN in every float format, a number out of any range in an integer.
_SENTINELS = {1: 0x7F, 2: 0x7E5A, 4: 0x7FC5A5A5, 8: 0x7FF8A5A5A5A5A5A5}


class Guarded:
    """A copy of a tensor, with its strides, between sentinels; `tensor` is what the operator gets."""

    def __init__(self, source: Tensor, device: str, shift: int = 0) -> None:
        """`shift`: begin so many elements past an address that is a multiple of every alignment."""
        pad = GUARD_BYTES // source.element_size()
        strides = source.stride()
        extent, integer = reach(source), INTEGERS[source.element_size()]
        self._memory = torch.full(
            (extent + 2 * pad + shift,), _SENTINELS[source.element_size()], dtype=integer, device=device
        )
        self._first, self._end = pad + shift, pad + shift + extent
        self.tensor = self._memory.view(source.dtype).as_strided(source.shape, strides, self._first)
        self.tensor.copy_(source)
        self._before = self._memory.clone()
        owned = torch.zeros(self._memory.shape, dtype=torch.bool, device=device)
        owned.as_strided(source.shape, strides, self._first).fill_(True)
        self._outside = ~owned

    def reset(self) -> None:
        """Back to what it held at first, sentinels included."""
        self._memory.copy_(self._before)

    @property
    def before(self) -> Tensor:
        """What the tensor held at first."""
        return self._before.view(self.tensor.dtype).as_strided(self.tensor.shape, self.tensor.stride(), self._first)

    @property
    def changed(self) -> bool:
        """Some element of the tensor has other bits than at first."""
        return bool(((self._memory != self._before) & ~self._outside).any())

    def is_held_by(self, tensor: Tensor) -> bool:
        """`tensor` is the very memory, in the same form."""
        own, other = ((t.data_ptr(), t.shape, t.stride(), t.dtype) for t in (self.tensor, tensor))
        return own == other

    def trespass(self) -> str | None:
        """Where memory outside the tensor was written, in words, or None."""
        strays = ((self._memory != self._before) & self._outside).nonzero().flatten()
        if not len(strays):
            return None
        first, last = self._first, self._end
        where = {
            "before its first element": int((strays < first).sum()),
            "past its last element": int((strays >= last).sum()),
            "between its rows": int(((strays >= first) & (strays < last)).sum()),
        }
        return ", ".join(
            f"{count} {'element' if count == 1 else 'elements'} {place}" for place, count in where.items() if count
        )


def guarded(arguments: dict[str, Any], device: str, shift: int = 0) -> dict[str, Guarded]:
    """The tensors of a call, those of half precision `shift` elements past an aligned address."""
    return {
        name: Guarded(value, device, shift if value.dtype is torch.float16 else 0)
        for name, value in arguments.items()
        if isinstance(value, Tensor)
    }


def values(arguments: dict[str, Any], guards: dict[str, Guarded]) -> dict[str, Any]:
    """What to call the operator with: each time new tensors, whose version says nothing of what their memory held."""
    return {name: guards[name].tensor.data if name in guards else value for name, value in arguments.items()}
