"""The functions of a library as graphs, made once: where their paths part, meet and go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schema_patch.elf.frames import Functions

from . import flow
from .flow import Graph
from .image import Image
from .instructions import JUMP, PLAIN, Step, uses
from .machine import HEAP, IMAGE, IMPORTS

R11 = b"\x41\xbb"  # how a number is moved there
CATCHES = ("__cxa_begin_catch",)
MOST = 4096  # entries of a table of jumps


class Unknown(Exception):
    """What is needed to follow code is not known."""


class Program:
    """What is known of the code before any of it is followed. `registers(name)`: whether an import does that."""

    def __init__(
        self,
        image: Image,
        functions: Functions,
        registers: Callable[[str], bool],
        never_returns: Callable[[str], bool],
    ) -> None:
        self.image, self.functions, self.registers, self.never_returns = image, functions, registers, never_returns
        self.step, self.name = image.step, image.name
        self._graphs: dict[int, Graph] = {}
        self._meetings: dict[int, dict[int, int]] = {}
        self._borrows: dict[int, bool] = {}
        self._resumed: dict[int, frozenset[int]] = {}
        self.catches = bool(image.slots(CATCHES)) or bool(image.own(CATCHES))

    def graph(self, entry: int) -> Graph:
        if entry not in self._graphs:
            self._graphs[entry] = flow.graph(entry, self.step, self._ends, self._table)
        return self._graphs[entry]

    def meeting(self, entry: int, branch: int) -> int:
        if entry not in self._meetings:
            self._meetings[entry] = flow.meetings(self.graph(entry).after)
        return self._meetings[entry].get(branch, flow.EXIT)

    def returns(self, entry: int, address: int) -> bool:
        """Whether a path leads from an address of a function to its return."""
        self.meeting(entry, address)
        return address in self._meetings[entry]

    def resumed(self, entry: int) -> frozenset[int]:
        """Where a function goes on behind an exception that it caught, or meets a path that does. Raises Unknown."""
        if entry not in self._resumed:
            after = self.graph(entry).after if self.catches else {}
            caught = self._caught(after)
            both = caught.keys() & after.keys()
            outside = ((after, after.keys() - both), (caught, caught.keys() - both)) if both else ()
            self._resumed[entry] = frozenset(
                to for ways, left in outside for at in left for to in ways[at] if to in both
            )
        return self._resumed[entry]

    def _caught(self, after: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """What runs behind an exception that some code catches and does not throw again, as a graph."""
        found: dict[int, tuple[int, ...]] = {}
        ways, looked, end = [after], set[int](), 0
        for way in ways:  # which grows
            for at in sorted(way):
                if at < end:
                    continue
                bounds = self.functions.around(at - IMAGE) or (at - IMAGE, at - IMAGE + 1)
                end = bounds[1] + IMAGE
                landings = () if bounds[0] in looked else self.functions.landings(at - IMAGE)
                looked.add(bounds[0])
                if landings is None:
                    raise Unknown(f"a table of exceptions that is not read, of the function at {bounds[0]:#x}")
                for landing in landings:
                    more = flow.graph(IMAGE + landing, self.step, self._dies, self._table).after
                    if any(flow.EXIT in to for to in more.values()):
                        found |= more
                        ways.append(more)
            end = 0
        return found

    def borrows(self, entry: int, registers: int) -> bool:
        """Whether a function uses what its caller keeps in some registers, a bit each."""
        if entry not in self._borrows:
            self._borrows[entry] = bool(flow.read_first(entry, registers, self.graph(entry).after, self._uses))
        return self._borrows[entry]

    def _uses(self, address: int) -> tuple[int, int, int]:
        size = self.step(address).next - address
        return uses(self.image.layout.constant(self.image.data, address - IMAGE, size))

    def behind(self, entry: int) -> int:
        """The function that a stub leads to, of the library itself or of another; else the address itself."""
        step = self.step(entry)
        for _ in range(2):  # a landing pad, the number of the slot
            numbered = self.image.layout.constant(self.image.data, step.address - IMAGE, 2) == R11
            if step.kind == PLAIN and (step.act is None or numbered):
                step = self.step(step.next)
        slot = step.slot if step.kind == JUMP else 0
        to = self.image.constant(slot) if slot else None
        if slot and to is None and self.image.name(self.image.first(slot)):  # of a function that may be missing
            to = self.image.first(slot)
        return to if isinstance(to, int) and IMPORTS <= to < HEAP else entry

    def _led(self, step: Step) -> int:
        """Where a call or a jump leads, also by way of a stub or a slot; 0 where that is not known."""
        word = self.behind(step.to) if step.to else self.image.constant(step.slot) if step.slot else 0
        return word if isinstance(word, int) else 0

    def _ends(self, step: Step) -> bool:
        """Whether a call never comes back, as far as its name says."""
        name = self.name(self._led(step))
        return bool(name and self.never_returns(name))

    def _dies(self, step: Step) -> bool:
        """Whether a call never comes back, also of a function of the library that only ends the program."""
        to = self._led(step)
        return self._ends(step) or (
            IMAGE <= to < HEAP and not any(flow.EXIT in ways for ways in self.graph(to).after.values())
        )

    def _table(self, entry: int, address: int) -> tuple[int, ...]:
        """Where a table of distances from itself leads, as far as that is inside the function."""
        bounds = self.functions.around(entry - IMAGE)
        targets: dict[int, None] = {}
        for n in range(MOST) if bounds else ():
            raw = self.image.layout.constant(self.image.data, address - IMAGE + 4 * n, 4)
            to = address + int.from_bytes(raw, "little", signed=True) - IMAGE
            if len(raw) < 4 or not bounds or not bounds[0] <= to < bounds[1]:
                break
            targets[to + IMAGE] = None
        return tuple(targets)
