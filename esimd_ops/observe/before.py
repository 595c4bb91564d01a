"""The memory that a call can reach, as it was before, and whose the bytes are that changed. Calls nothing.

What another thread does meanwhile is not the operator's doing. Its arguments are the caller's to keep still; what lies
beside them, and earlier results, count only where no other thread can have written them: none runs, or torch's count of
writes stands still and no other thread has called an observed operator.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from . import memory, reading
from .handed import Results, version
from .reading import NotWatched
from .record import Operator, Times, Where, tell
from .schedule import Alarm


class Before:
    """Made before a call, under `memory.aside`.

    `tensors`: by argument, those that hold bytes; `moment` tells older results from newer.
    """

    def __init__(self, values: dict[str, Any], results: Results, depth: int, threads: set[int]) -> None:
        """`threads`: all that have called observed operators. Raises NotWatched."""
        given = {name: reading.tensors(value) for name, value in values.items()}
        found = {name: [tensor for tensor in parts if tensor.numel()] for name, parts in given.items()}
        self.tensors = {name: parts for name, parts in found.items() if parts}
        every = [tensor for parts in self.tensors.values() for tensor in parts]
        self._values, self._forms = values, {name: [_form(part) for part in parts] for name, parts in given.items()}
        if any(_is_capturing(tensor.device) for tensor in every):
            raise NotWatched("captured into a graph")
        self._threads = threads
        self.storages = {(storage := tensor.untyped_storage())._cdata: storage for tensor in every}
        self._versions = self._version_counts()
        guarded = results.guarded(depth, list(self.storages.values()))
        self._touched = [handed.touched() for handed, _ in guarded]
        self._devices = {storage.device for storage in (*self.storages.values(), *(held for _, held in guarded))}
        memory.synchronize(self._devices)
        self._regions = memory.regions(self.storages.values())
        self._guarded = [(handed, memory.regions([storage])[0]) for handed, storage in guarded]
        self.moment = results.now()

    def compare(self, declared: frozenset[str], seen: Operator, where: Where) -> None:
        """Puts into `seen` what changed since."""
        memory.synchronize(self._devices)
        now = self._version_counts()
        moved = [name for name in now if now[name] != self._versions[name]]
        here = threading.current_thread()
        alone = not any(thread is not here and not isinstance(thread, Alarm) for thread in threading.enumerate())
        quiet = alone or len(self._threads) == 1
        counted = not moved and None not in {count for counts in now.values() for count in counts}
        for name in self.tensors:
            seen.given[name] = seen.given.get(name, 0) + 1
        written = self._reformed(seen, where)
        for region in self._regions:
            if (changed := region.changed()) is not None:
                beside = quiet and (alone or counted)
                written |= self._attribute(region, changed, declared, seen, where, beside=beside)
        known = {home for name in written | (declared & {*moved}) for home in self._homes(name)}
        for name in (name for name in moved if name not in written):
            if name in declared or not known & self._homes(name):  # views of one storage are counted together
                tell(seen.same, name, Times(where))
        for (handed, region), touched in zip(self._guarded, self._touched, strict=True):
            sure = alone or (quiet and not touched and not handed.touched())
            if (changed := region.changed()) is not None:
                count = min(int(changed.sum()) * region.unit, region.size)
                tell(seen.earlier if sure else seen.meanwhile, str(handed), Times(where, 1, count, region.size))

    def _homes(self, name: str) -> set[int]:
        return {tensor.untyped_storage()._cdata for tensor in self.tensors.get(name, ())}

    def _version_counts(self) -> dict[str, list[int | None]]:
        return {name: [version(tensor) for tensor in parts] for name, parts in self.tensors.items()}

    def _reformed(self, seen: Operator, where: Where) -> set[str]:
        """Arguments that have another shape, or lie elsewhere, since the call."""
        found = set()
        for name, forms in self._forms.items():
            try:
                now = reading.tensors(self._values[name])  # what it is made of may be other tensors
            except NotWatched:
                now = []
            if [_form(part) for part in now] != forms:
                size = _size(now)
                tell(seen.writes, name, Times(where, 1, size, size))
                seen.given.setdefault(name, 1)
                found.add(name)
        return found

    def _attribute(
        self,
        region: memory.Region,
        changed: Tensor,
        declared: frozenset[str],
        seen: Operator,
        where: Where,
        *,
        beside: bool,
    ) -> set[str]:
        """Whose the changed bytes are: of the arguments declared as written, of another, of several, of none."""
        own = {name: [tensor for tensor in parts if region.holds(tensor)] for name, parts in self.tensors.items()}
        own = {name: parts for name, parts in own.items() if parts}
        covers = {name: region.cover(parts) for name, parts in own.items()}
        written = set()

        def count(units: Tensor, most: int) -> int:
            return min(int(units.sum()) * region.unit, most)

        for name in (name for name in covers if name in declared):
            if found := count(changed & covers[name], _size(own[name])):
                tell(seen.writes, name, Times(where, 1, found, _size(own[name])))
                written.add(name)
        for name in written:
            changed = changed & ~covers[name]
        if not bool(changed.any()):
            return written
        others = {name: cover for name, cover in covers.items() if name not in declared}
        owners = sum((cover.to(torch.uint8) for cover in others.values()), torch.zeros_like(changed, dtype=torch.uint8))
        for name, cover in others.items():
            if found := count(changed & cover & (owners == 1), _size(own[name])):
                tell(seen.writes, name, Times(where, 1, found, _size(own[name])))
                written.add(name)
        several = changed & (owners > 1)
        if bool(several.any()):
            names = [name for name, cover in others.items() if bool((several & cover).any())]
            tell(seen.either, " or ".join(names), Times(where, 1, count(several, region.size), region.size))
            written |= set(names)
        if beside and (found := count(changed & (owners == 0), region.size)):
            tell(seen.outside, ", ".join(own), Times(where, 1, found, region.size))
        return written


def _form(tensor: Tensor) -> tuple[object, ...]:
    """What a resize or a swap of storages changes."""
    storage = tensor.untyped_storage()
    place = (storage._cdata, storage.data_ptr(), storage.nbytes(), tensor.storage_offset())
    return *place, tensor.shape, tensor.stride()


def _size(tensors: list[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _is_capturing(device: torch.device) -> bool:
    asked = getattr(getattr(torch, device.type, None), "is_current_stream_capturing", None)
    return bool(asked and asked())
