"""Results that were handed out earlier, and arguments that were given, as long as their memory lives: by its identity,
which is never used twice while a weak reference is held. What was freed is gone from here, whoever gets its address
next."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from . import memory
from .record import Where

REMEMBERED = 1024  # results of which is known where they lie; and as many arguments
GUARDED = 32  # of these, the last of a thread, are looked at whether a call changes them,
LARGEST = 1 << 20  # up to this many bytes each


@dataclass(frozen=True)
class Handed:
    """One result, or an argument, by its name. `order`: among all; `turn`: among calls of its operator with the same
    shapes."""

    op: str
    turn: tuple[object, int]
    where: Where
    storage: StorageWeakRef
    place: tuple[int, int]
    start: int
    end: int
    order: int
    thread: int
    depth: int
    argument: str = ""

    def __str__(self) -> str:
        what = f"'{self.argument}', given to" if self.argument else "the result that was handed out by"
        return f"{what} {self.op} at {self.where.place}"

    def alive(self) -> torch.UntypedStorage | None:
        """Its memory, held, where somebody still has it. A storage that was resized has another, or none."""
        found: torch.UntypedStorage | None = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        return found if found is not None and _place(found) == self.place else None


@dataclass
class Results:
    """All that were handed out in this process, or given and not declared as written: what is may be written late."""

    _all: deque[Handed] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _given: dict[int, Handed] = field(default_factory=dict)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def now(self) -> int:
        """A moment: results that are handed out later have a higher order."""
        return next(self._order)

    def add(
        self, op: str, turn: tuple[object, int], where: Where, tensor: Tensor, depth: int, argument: str = ""
    ) -> None:
        storage = tensor.untyped_storage()
        if not storage.nbytes() or storage._cdata in self._given:
            return
        kept = Handed(
            op, turn, where, StorageWeakRef(storage), _place(storage), *memory.extent(tensor), next(self._order),
            threading.get_ident(), depth, argument,
        )  # fmt: skip
        if argument:
            self._given[storage._cdata] = kept
            if len(self._given) > REMEMBERED:
                del self._given[next(iter(self._given))]
        else:
            self._all.append(kept)

    def earlier(self, tensor: Tensor, before: int) -> Handed | None:
        """The last one of before that moment whose living memory this tensor lies in."""
        start, end = memory.extent(tensor)
        for handed in self._newest():
            if handed.start < end and start < handed.end and handed.order < before and not handed.storage.expired():
                kept = handed.alive()
                if kept is not None and kept.device == tensor.device:
                    return handed
        return None

    def _newest(self) -> Iterator[Handed]:
        """Results before arguments, of each the newest first."""
        yield from reversed(tuple(self._all))
        yield from reversed(tuple(self._given.values()))

    def calls_since(self, handed: Handed) -> int:
        """How many watched calls of its operator with the same shapes have handed out a result after it."""
        alike = (each for each in self._all if each.op == handed.op and each.turn[0] == handed.turn[0])
        return len({each.turn[1] for each in alike if each.order > handed.order} - {handed.turn[1]})

    def guarded(self, depth: int, given: list[torch.UntypedStorage]) -> list[tuple[torch.UntypedStorage, list[Handed]]]:
        """Where the last ones of this thread lie that are alive, and in no memory of what is given now."""
        found: dict[int, tuple[torch.UntypedStorage, list[Handed]]] = {}
        taken = [(storage.device, storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in given]
        thread = threading.get_ident()
        for handed in self._newest():
            if len(found) == GUARDED:
                break
            if handed.thread != thread or handed.depth != depth or handed.storage.expired():
                continue
            storage = handed.alive()
            if storage is None or storage.nbytes() > LARGEST or storage.is_shared():
                continue
            first, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            if not any(storage.device == device and first < b and a < end for device, a, b in taken):
                found.setdefault(storage._cdata, (storage, []))[1].append(handed)
        return list(found.values())


def _place(storage: torch.UntypedStorage) -> tuple[int, int]:
    return storage.data_ptr(), storage.nbytes()
