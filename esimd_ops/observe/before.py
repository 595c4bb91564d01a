"""The memory that a call can reach, as it was before, and whose the bytes are that changed. Calls nothing.

What another thread does meanwhile is not the operator's doing. Its arguments are the caller's to keep still; what lies
beside them, and earlier results, count only where no other thread runs: what numpy or C++ writes there, torch does not
count.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from . import memory, reading
from .handed import Results
from .reading import NotWatched
from .record import OperatorSeen, TimesSeen, Where, count, tell
from .schedule import Alarm


class Before:
    """Made before a call, under `memory.aside`.

    `tensors`: by argument, those that hold bytes; `moment` tells older results from newer.
    """

    def __init__(self, values: dict[str, Any], results: Results, depth: int, declared: frozenset[str]) -> None:
        """Raises NotWatched."""
        given = {name: reading.tensors(value) for name, value in values.items()}
        found = {name: [tensor for tensor in parts if tensor.numel()] for name, parts in given.items()}
        self.tensors = {name: parts for name, parts in found.items() if parts}
        every = [tensor for parts in self.tensors.values() for tensor in parts]
        self._values, self._forms = values, {name: [_form(part) for part in parts] for name, parts in given.items()}
        if any(_is_capturing(tensor.device) for tensor in every):
            raise NotWatched("captured into a graph")
        self._declared = declared
        self.storages = {(storage := tensor.untyped_storage())._cdata: storage for tensor in every}
        self._versions = self._version_counts()
        guarded = results.guarded(depth, list(self.storages.values()))
        self._devices = {storage.device for storage in (*self.storages.values(), *(held for held, _ in guarded))}
        memory.synchronize(self._devices)
        self._regions = memory.regions(self.storages.values())
        self._apart = [self._told_apart(region) for region in self._regions]
        self._guarded = [(memory.regions([storage])[0], handed) for storage, handed in guarded]
        self.moment = results.now()

    def compare(self, seen: OperatorSeen, where: Where) -> None:
        """Puts into `seen` what changed since."""
        memory.synchronize(self._devices)
        now = self._version_counts()
        moved = [name for name in now if now[name] != self._versions[name]]
        here = threading.current_thread()
        alone = not any(thread is not here and not isinstance(thread, Alarm) for thread in threading.enumerate())
        for name in self.tensors:
            count(seen.given, name)
        written = self._reformed(seen, where)
        for region, apart in zip(self._regions, self._apart, strict=True):
            if (changed := region.changed()) is not None:
                written |= self._attribute(region, changed, apart, seen, where, beside=alone)
        known = {home for name in written | (self._declared & {*moved}) for home in self._homes(name)}
        for name in (name for name in moved if name not in written):
            # Views of one storage are counted together, whoever writes to one of them.
            if name in self._declared or (alone and not known & self._homes(name)):
                tell(seen.same, name, TimesSeen(where))
        for region, kept in self._guarded:
            if (changed := region.changed()) is None:
                continue
            for handed in kept:
                whole = (region.start, region.start + region.size)
                start, end = whole if handed.argument else (handed.start, handed.end)
                if found := region.count(changed, start, end):
                    tell(
                        seen.earlier if alone else seen.meanwhile, str(handed), TimesSeen(where, 1, found, end - start)
                    )

    def _told_apart(self, region: memory.Region) -> dict[str, list[tuple[Tensor, Tensor]]]:
        """Sums of undeclared arguments: that may share blocks with others, and with what nobody gave, but no byte."""
        own = self._in(region)
        if region.unit == 1:
            return {}
        apart = [
            name
            for name in own.keys() - self._declared
            if not any(memory.overlap(a, b) for other in own.keys() - {name} for a in own[name] for b in own[other])
        ]
        return {name: [(tensor, region.sums(tensor)) for tensor in own[name]] for name in sorted(apart)}

    def _in(self, region: memory.Region) -> dict[str, list[Tensor]]:
        found = {name: [tensor for tensor in parts if region.holds(tensor)] for name, parts in self.tensors.items()}
        return {name: parts for name, parts in found.items() if parts}

    def _homes(self, name: str) -> set[int]:
        return {tensor.untyped_storage()._cdata for tensor in self.tensors.get(name, ())}

    def _version_counts(self) -> dict[str, list[int | None]]:
        return {name: [_version(tensor) for tensor in parts] for name, parts in self.tensors.items()}

    def _reformed(self, seen: OperatorSeen, where: Where) -> set[str]:
        """Arguments that have another shape, or lie elsewhere, since the call."""
        found = set()
        for name, forms in self._forms.items():
            try:
                now = reading.tensors(self._values[name])  # what it is made of may be other tensors
            except NotWatched:
                now = []
            if [_form(part) for part in now] != forms:
                size = _size(now)
                tell(seen.writes, name, TimesSeen(where, 1, size, size))
                seen.given.setdefault(name, 1)
                found.add(name)
        return found

    def _attribute(
        self,
        region: memory.Region,
        changed: Tensor,
        apart: dict[str, list[tuple[Tensor, Tensor]]],
        seen: OperatorSeen,
        where: Where,
        *,
        beside: bool,
    ) -> set[str]:
        """Whose the changed bytes are: of the arguments declared as written, of another, of several, of none."""
        own = self._in(region)
        apart = {name: sums for name, sums in apart.items() if name in own}
        covers = {name: region.cover(parts) for name, parts in own.items()}
        written = set()

        def size(units: Tensor, most: int) -> int:
            return min(int(units.sum()) * region.unit, most)

        kept = {n for n, sums in apart.items() if all(torch.equal(region.sums(t), was) for t, was in sums)}
        for name in (name for name in covers if name in {*self._declared, *apart} - kept):
            if found := size(changed & covers[name], _size(own[name])):
                tell(seen.writes, name, TimesSeen(where, 1, found, _size(own[name])))
                written.add(name)
        for name in written:
            changed = changed & ~covers[name]
        if not bool(changed.any()):
            return written
        others = {name: cover for name, cover in covers.items() if name not in {*self._declared, *apart}}
        owners = sum((cover.to(torch.uint8) for cover in others.values()), torch.zeros_like(changed, dtype=torch.uint8))
        for name, cover in others.items():
            if found := size(changed & cover & (owners == 1), _size(own[name])):
                tell(seen.writes, name, TimesSeen(where, 1, found, _size(own[name])))
                written.add(name)
        several = changed & (owners > 1)
        if bool(several.any()):
            names = [name for name, cover in others.items() if bool((several & cover).any())]
            tell(seen.either, " or ".join(names), TimesSeen(where, 1, size(several, region.size), region.size))
            written |= set(names)
        if beside and (found := size(changed & (owners == 0), region.size)):
            tell(seen.outside, ", ".join(own), TimesSeen(where, 1, found, region.size))
        return written


def _version(tensor: Tensor) -> int | None:
    """Torch's count of writes to it; None where it keeps none."""
    return None if tensor.is_inference() else tensor._version


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
