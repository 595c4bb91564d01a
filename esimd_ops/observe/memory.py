"""Bytes of storages before and after a call: which of them changed, and whose they are. Knows no operators.

Storages that lie in each other's memory are one region. A region of up to EXACT bytes is copied, on its own device, and
compared byte by byte; of a larger one the checksums of blocks are kept, and what changed is known to a block.
"""

from __future__ import annotations

import ctypes
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from esimd_ops.tensors import reach

EXACT = 16 << 20
BLOCK = 64 << 10
LARGEST_MASK = 256 << 20
_BLOCKS_AT_ONCE = 64  # of a device's checksums: their intermediate values stay in its cache
_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)

# An odd factor and shifts, as in splitmix64: each bit of a word moves every bit of what is summed.
_MIX = -0x61C8864680B583EB


@contextmanager
def aside() -> Iterator[None]:
    """What torch is asked for within is not the program's: no mode of its own hears of it, nothing is recorded."""
    modes = _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
    with torch._C.DisableTorchFunction(), modes, torch.no_grad():
        yield


class Region:
    """Storages of one device whose memory touches; `start` and `size` in bytes."""

    def __init__(self, storages: list[torch.UntypedStorage]) -> None:
        self.start = min(storage.data_ptr() for storage in storages)
        self.size = max(storage.data_ptr() + storage.nbytes() for storage in storages) - self.start
        self.unit = 1 if self.size <= EXACT else BLOCK
        self._storages = [(storage, storage.data_ptr(), storage.nbytes()) for storage in storages]
        self._homes = {storage._cdata for storage in storages}
        self._device = storages[0].device
        self._window = (0, -(-self.size // self.unit))
        self._before = self._taken()

    def holds(self, tensor: Tensor) -> bool:
        """Its elements lie here."""
        return tensor.untyped_storage()._cdata in self._homes

    def changed(self) -> Tensor | None:
        """A bool for each unit from the first that changed to the last, on the region's device; None where none did.

        Of a storage that was resized nothing can be compared; its tensors have another form.
        """
        if any((storage.data_ptr(), storage.nbytes()) != (at, size) for storage, at, size in self._storages):
            return None
        if isinstance(self._before, bytes):
            if not _compare(self.start, self._before, self.size):
                return None
            old, new = torch.frombuffer(bytearray(self._before), dtype=torch.uint8), self._bytes()
        elif self.unit == 1:
            old, new = self._before, self._bytes()
        else:
            taken = self._taken()
            assert isinstance(taken, Tensor)
            old, new = self._before, taken
        places = _places(old, new)
        if places is None:
            return None
        self._window = places
        return old[slice(*places)] != new[slice(*places)]

    def cover(self, tensors: Iterable[Tensor]) -> Tensor:
        """The units that elements of these tensors lie in, of those that `changed` gave."""
        lo, hi = self._window
        covered = torch.zeros(hi - lo, dtype=torch.bool, device=self._device)
        for tensor in tensors:
            first, end = (place - self.start for place in extent(tensor))
            if self.unit == 1 and not tensor.is_contiguous():
                covered |= _mask(tensor, self.start, self.size, 1, self._device)[lo:hi]
            else:
                covered[max(0, first // self.unit - lo) : max(0, -(-end // self.unit) - lo)] = True
        return covered

    def count(self, changed: Tensor, start: int, end: int) -> int:
        """How many bytes of these addresses are among what `changed` gave; of a region that is known by bytes."""
        first = self.start + self._window[0]
        return int(changed[max(0, start - first) : max(0, end - first)].sum())

    def sums(self, tensor: Tensor) -> Tensor:
        """Of the elements of a tensor alone, whatever lies between them."""
        elements = self._bytes().as_strided(*_box(tensor), tensor.data_ptr() - self.start)
        rows = max(1, BLOCK * _BLOCKS_AT_ONCE // elements[0].numel())
        return torch.cat([_summed(part.contiguous().view(-1)) for part in elements.split(rows)])

    def _bytes(self) -> Tensor:
        if self._device.type == "cpu":
            return torch.frombuffer((ctypes.c_char * self.size).from_address(self.start), dtype=torch.uint8)
        storage, at, _ = self._storages[0]
        whole = torch.empty(0, dtype=torch.uint8, device=self._device).set_(storage)
        return whole[self.start - at :][: self.size]

    def _taken(self) -> bytes | Tensor:
        """What is kept of the contents."""
        if self._device.type == "cpu":
            if self.unit == 1:
                return ctypes.string_at(self.start, self.size)
            ends = range(self.start, self.start + self.size, BLOCK)
            memory = [(ctypes.c_char * min(BLOCK, self.start + self.size - at)).from_address(at) for at in ends]
            return torch.tensor([zlib.crc32(block) for block in memory])
        return self._bytes().clone() if self.unit == 1 else checksums(self._bytes())


def regions(storages: Iterable[torch.UntypedStorage]) -> list[Region]:
    """The storages, where they hold anything, in regions, in the order given, not in that of addresses, which differs
    from run to run. Storages of a device that only touch stay apart.

    Outside the CPU a region is one storage: two storages over one memory are compared twice there.
    """
    each = {storage._cdata: storage for storage in storages if storage.nbytes()}
    groups, end = list[list[torch.UntypedStorage]](), 0
    for storage in sorted(each.values(), key=lambda storage: (str(storage.device), storage.data_ptr())):
        start, device = storage.data_ptr(), storage.device
        if groups and start < end and device == groups[-1][0].device and device.type == "cpu":
            groups[-1].append(storage)
        else:
            groups.append([storage])
            end = start
        end = max(end, start + storage.nbytes())
    order = list(each)
    return [Region(group) for group in sorted(groups, key=lambda group: min(order.index(s._cdata) for s in group))]


def _places(old: Tensor, new: Tensor) -> tuple[int, int] | None:
    """From where to where two rows of equal length differ; bytes are compared eight at a time."""
    width = 8 if old.dtype == torch.uint8 and old.numel() >= 8 else 1
    whole = old.numel() // width * width
    a, b = (each[:whole].view(torch.int64) if width == 8 else each for each in (old, new))
    found = (a != b).nonzero().flatten()
    at_end = bool((old[whole:] != new[whole:]).any())
    if not len(found):
        return (whole, old.numel()) if at_end else None
    return int(found[0]) * width, old.numel() if at_end else (int(found[-1]) + 1) * width


def extent(tensor: Tensor) -> tuple[int, int]:
    """Where its first element begins and its last one ends, in bytes; equal where it has none."""
    first = tensor.data_ptr()
    return first, first + reach(tensor) * tensor.element_size()


def overlap(one: Tensor, other: Tensor) -> bool:
    """Whether some byte belongs to elements of both."""
    (a, b), (c, d) = extent(one), extent(other)
    start, end = max(a, c), min(b, d)
    if start >= end or one.device != other.device:
        return False
    (shape, strides), (other_shape, other_strides) = _box(one), _box(other)
    if len(shape) == len(other_shape) == 1:
        return True
    unit = math.gcd(shape[-1], other_shape[-1], *strides[:-1], *other_strides[:-1], a - c)
    first, size = min(a, c), max(b, d) - min(a, c)
    if size // unit > LARGEST_MASK:
        return False  # gigabytes in which elements of both take turns: that they share one is not shown
    masks = [_mask(tensor, first, size, unit, torch.device("cpu")) for tensor in (one, other)]
    return bool((masks[0] & masks[1]).any())


def _box(tensor: Tensor) -> tuple[list[int], list[int]]:
    """Shape and strides of its elements in bytes. The last dimension is of bytes that follow each other."""
    run, steps = tensor.element_size(), list[tuple[int, int]]()
    sizes = ((step * tensor.element_size(), n) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n > 1)
    for step, count in sorted(sizes):
        if step <= run:
            run += (count - 1) * step
        else:
            steps.insert(0, (step, count))
    return [*(count for _, count in steps), run], [*(step for step, _ in steps), 1]


def _mask(tensor: Tensor, start: int, size: int, unit: int, device: torch.device) -> Tensor:
    """Which units of this memory elements of the tensor lie in."""
    (*counts, run), (*steps, _) = _box(tensor)
    whole = torch.zeros(size // unit, dtype=torch.bool, device=device)
    shape, strides = (*counts, run // unit), (*(step // unit for step in steps), 1)
    whole.as_strided(shape, strides, (tensor.data_ptr() - start) // unit).fill_(True)
    return whole


def _summed(data: Tensor) -> Tensor:
    return torch.tensor([zlib.crc32(data.numpy().data)]) if data.device.type == "cpu" else checksums(data)


def checksums(data: Tensor) -> Tensor:
    """One 64-bit sum for each block of BLOCK bytes, computed where the data is; the end is filled up with zeros."""
    found = []
    for part in data.split(BLOCK * _BLOCKS_AT_ONCE):
        short = -part.numel() % BLOCK
        words = torch.nn.functional.pad(part, (0, short)) if short else part.contiguous()
        mixed = words.view(-1).view(torch.int64).view(-1, BLOCK // 8)
        mixed = (mixed + torch.arange(1, BLOCK // 8 + 1, device=data.device)) * _MIX
        mixed = (mixed ^ (mixed >> 29)) * _MIX
        found.append((mixed ^ (mixed >> 32)).sum(1))
    return torch.cat(found)


def synchronize(devices: Iterable[torch.device]) -> None:
    """Waits for what was begun on these devices, on every stream."""
    for device in {device for device in devices if device.type not in ("cpu", "meta")}:
        getattr(torch, device.type).synchronize(device)
