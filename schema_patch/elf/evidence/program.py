"""The functions of a library as graphs, made once: what each is given, and whether it leads to a registration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from schema_patch.elf.frames import Functions

from . import flow
from .flow import ARGUMENTS, Graph
from .image import Image
from .instructions import JUMP, PLAIN, Step
from .machine import HEAP, IMAGE, IMPORTS

# The arguments of imports, a bit for each register, where names tell: member functions without any, and C's.
GIVEN = (
    (re.compile(r"^_ZNK?.*Ev$|^strlen$|^free$|^_Zn[wa]m$"), 1 << 7),
    (re.compile(r"^_Zd[la]Pv"), 1 << 7 | 1 << 6),
    (re.compile(r"^mem(set|cpy|move|cmp)$"), 1 << 7 | 1 << 6 | 1 << 2),
)
R11 = 1 << 11
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
        self._first: dict[int, int] = {}
        self._given: dict[int, int] = {}
        self._leads: dict[int, bool] = {}
        self._touches: dict[int, bool] = {}
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

    def first(self, entry: int) -> int:
        """Some of the registers that a function is given: those that it reads before it can branch."""
        if entry not in self._first:
            read, own, step = 0, flow.ARGUMENTS, self.step(entry)
            while step.kind == PLAIN and own:
                read |= own & step.reads
                own &= ~step.writes
                step = self.step(step.next)
            self._first[entry] = read
        return self._first[entry]

    def given(self, entry: int) -> int:
        self._know(entry)
        return self._given[entry]

    def leads(self, entry: int) -> bool:
        """Whether a function calls torch's registration, itself or through others."""
        self._know(entry)
        return self._leads[entry]

    def touches(self, entry: int) -> bool:
        """Whether a function, or one that it calls, names data that code writes."""
        self._know(entry)
        return self._touches[entry]

    def behind(self, entry: int) -> int:
        """The function that a stub leads to, of the library itself or of another; else the address itself."""
        step = self.step(entry)
        for _ in range(2):  # a landing pad, the number of the slot
            if step.kind == PLAIN and (step.act is None or step.writes == R11):
                step = self.step(step.next)
        slot = step.slot if step.kind == JUMP else 0
        to = self.image.constant(slot) if slot else None
        if slot and to is None and self.image.name(self.image.first(slot)):  # of a function that may be missing
            to = self.image.first(slot)
        return to if isinstance(to, int) and IMPORTS <= to < HEAP else entry

    def _know(self, entry: int) -> None:
        """Looks at a function and all that it calls, until nothing more is learnt of any of them."""
        if entry in self._given:
            return
        pending, found = [entry], {}
        while pending:
            at = pending.pop()
            if at not in found and at not in self._given:
                found[at] = list(flow.called(self.step, self.graph(at).after))
                pending += [to for step in found[at] if (to := self._inside(step))]
        self._given |= dict.fromkeys(found, 0)
        self._leads |= dict.fromkeys(found, False)
        self._touches |= {at: any(map(self._names_data, self.graph(at).after)) for at in found}
        changed = True
        while changed:
            changed = False
            for at, steps in found.items():
                now = flow.given(at, self.step, self.graph(at).after, self._taken)
                leading = any(map(self._registers, steps))
                touching = self._touches[at] or any(self._touches.get(self._inside(step), False) for step in steps)
                if (now, leading, touching) != (self._given[at], self._leads[at], self._touches[at]):
                    self._given[at], self._leads[at], self._touches[at] = now, leading, touching
                    changed = True

    def _names_data(self, at: int) -> bool:
        """Whether an instruction names a place that is written, or a slot that leads to one."""
        place = self.step(at).place
        if not place:
            return False
        word = self.image.constant(place & ~7)
        if not isinstance(word, int):
            return True
        return IMAGE <= word < HEAP and self.image.constant(word & ~7) is None

    def _inside(self, step: Step) -> int:
        """The function of the library itself that a call leads to, also by way of a slot."""
        word = self.behind(step.to) if step.to else self.image.constant(step.slot) if step.slot else 0
        return word if isinstance(word, int) and IMAGE <= word < HEAP else 0

    def _import(self, step: Step) -> str | None:
        """The import that a call or a jump through a slot leads to, where the slot says so."""
        word = self.behind(step.to) if step.to else self.image.constant(step.slot) if step.slot else None
        return self.name(word) if isinstance(word, int) else None

    def _taken(self, step: Step) -> int:
        to = self._inside(step)
        if to:
            return self._given.get(to, ARGUMENTS)
        name = self._import(step) or ""
        return next((given for names, given in GIVEN if names.search(name)), ARGUMENTS)

    def _registers(self, step: Step) -> bool:
        to = self._inside(step)
        if to:
            return self._leads.get(to, False)
        name = self._import(step)
        return bool(name and self.registers(name))

    def _ends(self, step: Step) -> bool:
        """Whether a call never comes back, as far as its name says."""
        name = self._import(step)
        return bool(name and self.never_returns(name))

    def _dies(self, step: Step) -> bool:
        """Whether a call never comes back, also of a function of the library that only ends the program."""
        to = self._inside(step)
        return self._ends(step) or (bool(to) and not any(flow.EXIT in ways for ways in self.graph(to).after.values()))

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
