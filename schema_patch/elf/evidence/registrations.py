"""A library -> its registrations: which text each call that registers an operator is given, in which namespace.

Every call of torch's registration is found by its bytes, and the functions around them are followed: from where a
namespace is opened, and where a text or a namespace comes from a caller, from the callers on. A call that is not
reached so is a registration of unknown text; none is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from schema_patch.elf import calls
from schema_patch.elf.dynamic import Dynamic
from schema_patch.elf.frames import Functions
from schema_patch.elf.layout import Bytes, Layout, Part, holds

from . import effects, held, imports
from .apart import Apart
from .image import BESIDE, Image
from .imports import Imports, Record, Text
from .instructions import CALL, END
from .machine import IMAGE, Memory
from .program import Program, Unknown
from .run import STUB, Follower, never_returns
from .start import Start
from .traced import NOWHERE
from .users import Users

LEVELS = 12  # of callers
# Instructions followed, a decoded one counted as 20: some minutes, and some seconds for a small library. Published
# ones take at most 3 for a byte of code, small ones 900,000 in all.
WORK, DECODED = 100_000_000, 20
LEAST, BYTE = 3_000_000, 32
POINTERS = 500_000  # of what the loader runs, for the sake of calls through pointers
TOO_MUCH = "the library has more code than is followed"
OPENS = (*imports.OPENS, *imports.STABLE_OPENS)
DEFINES = (*imports.DEFINES, imports.OLD_STYLE, *imports.UNTOLD, *imports.STABLE_DEFINES)


@dataclass(frozen=True, slots=True)
class ReadRegistration:
    """One operator registered. `text`: all that torch is given, or None; `known`: how it begins, as far as is known.

    `space`: the namespace, None where it is not known. `site`: the address behind the call; `entry`: of the function
    around it. `why`: what stood in the way. `places`: the address of each byte of the text, if asked for. `relies`: the
    names by which the library finds what was followed, so that another library may stand in for it.
    """

    text: str | None
    known: str
    space: str | None
    site: int
    entry: int
    why: str = ""
    places: tuple[int, ...] = ()
    relies: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Result:
    """What following one function gave."""

    records: list[Record]
    opened: list[str | None]
    called: set[int]
    entries: set[int]
    effects: dict[int, set[str]]
    why: str = ""

    @property
    def depends(self) -> bool:
        """Whether more may be known from a caller on."""
        unknown = any(record.text.text is None or record.space is None for record in self.records)
        return unknown or None in self.opened or bool(self.why)


@dataclass
class _Search:
    data: Bytes
    layout: Layout
    image: Image
    functions: Functions
    program: Program
    results: dict[int, _Result] = field(default_factory=dict)
    superseded: set[int] = field(default_factory=set)
    called: set[int] = field(default_factory=set)
    outside: set[int] = field(default_factory=set)
    asked: dict[int, set[int]] = field(default_factory=dict)
    loading: set[int] = field(default_factory=set)
    shown: dict[int, str] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    kept: list[held.Use] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.apart = Apart(self.program)

    @property
    def left(self) -> int:
        """The work that is not done yet."""
        code = sum(part.end - part.start for part in self.layout.code)
        return min(WORK, LEAST + BYTE * code) - self.steps - DECODED * self.image.decoded

    @property
    def exhausted(self) -> bool:
        return self.left < 0

    def sites(self, *groups: tuple[str, ...]) -> tuple[list[set[int]], set[int]]:
        """Of each group of names, the ends of all calls of functions whose name begins so; and who keeps an address."""
        slots = {slot: n for n, names in enumerate(groups) for slot in self.image.slots(names)}
        ways = {address: n for n, names in enumerate(groups) for address in self.image.own(names)}
        found: dict[int, set[int]] = {}
        keepers = self._direct(slots, ways, found)
        return [found.get(n, set()) for n in range(len(groups))], keepers

    def _direct(self, slots: dict[int, int], ways: dict[int, int], found: dict[int, set[int]]) -> set[int]:
        """The ends of calls through slots and of addresses, by the function that each stands for.

        Gives the functions that keep one's address in a register, for many calls.
        """
        ways, keepers = dict(ways), set[int]()
        for part, place, slot, is_call in (way for each in slots for way in self._through.get(each, ())):
            if is_call:
                found.setdefault(slots[slot], set()).add(place)
                continue
            ways |= dict.fromkeys(calls.entries(self.data, part, place), slots[slot])
            around = self.functions.around(place)
            if around and place - around[0] > STUB and not self._is_stub(place):
                found.setdefault(slots[slot], set()).add(place + 6)  # a call in the place of a return
        for part in self.layout.code:
            keepers |= self.around(site for site, _ in calls.references(self.data, part, slots.keys() - self._through))
            for site, target in calls.direct(self.data, part, ways):
                found.setdefault(ways[target], set()).add(site)
        return keepers

    @cached_property
    def _through(self) -> dict[int, list[tuple[Part, int, int, bool]]]:
        """Of each slot, where code leads through it: see calls.stubs."""
        found: dict[int, list[tuple[Part, int, int, bool]]] = {}
        for part in self.layout.code:
            for place, slot, is_call in calls.stubs(self.data, part, self.image.filled):
                found.setdefault(slot, []).append((part, place, slot, is_call))
        return found

    def _is_stub(self, place: int) -> bool:
        """Whether a jump stands among its like, as in the tables that linkers make."""
        near = (self.layout.constant(self.data, place + step, 2) for step in (16, -16, 8, -8))
        return b"\xff\x25" in near

    def _callers(self, targets: Iterable[int]) -> dict[int, set[int]]:
        """Of each function, the ends of the calls that lead there, directly or through a stub."""
        new = {target: target for target in targets if target not in self.asked}
        if new:
            self.asked |= {target: set() for target in new}
            slots = {slot: target for target in new for slot in self.image.inner_slots.get(target, ())}
            self.loading |= self._direct(slots, new, self.asked)
        return {target: self.asked[target] for target in targets}

    def kept_calls(self) -> set[int]:
        """The ends of calls by a register, in functions that keep the address of torch's registration in one.

        Of a function that was followed to its end, what was not reached is never run.
        """
        whole = {entry for entry, result in self.results.items() if not result.why}
        return {
            step.next - IMAGE
            for entry in self.loading - whole
            for step in map(self.image.step, self.program.graph(IMAGE + entry).after)
            if step.kind == CALL and not step.to and not step.slot
        }

    def doubts(self) -> Iterator[tuple[int, str]]:
        """Where the loader, by calls that say where, leads to what makes the library another than its file, and why."""
        if holds(self.data, effects.MEMORY):
            yield 0, effects.UNLOCKS
        asked = {site: home for site, (home, name) in self._start.asked.items() if name in effects.EFFECTS}
        for entry in sorted({*asked.values()} - self.results.keys()):  # the code tells what the call is given
            self.run(entry)
        end = self.left - POINTERS
        if self.image.imports(effects.WRITABLE):  # pointers may lead there too
            for entry in sorted(self.image.started() - self.results.keys()):
                self.run(entry, most=self.left - end)
        for site in sorted({*asked, *(site - IMAGE for result in self.results.values() for site in result.effects)}):
            why = max(self._effects(site) or {effects.UNTOLD})
            if why:
                yield site, why
        if not self._start.whole:
            yield 0, effects.TOO_MUCH

    @cached_property
    def _start(self) -> Start:
        return Start(self.image, self.program, self.functions)

    @cached_property
    def _shared(self) -> bool:
        """Whether others may run beside what the loader runs, as far as calls that say where lead."""
        return self.image.imports(BESIDE) and any(name in BESIDE for _, name in self._start.asked.values())

    def _effects(self, site: int) -> set[str]:
        """What a call does to the library, by all that was followed to it."""
        found = (result.effects.get(IMAGE + site, ()) for result in self.results.values())
        return set().union(*found)

    def run(self, entry: int, most: int = WORK) -> None:
        """Follows a function, of whose arguments nothing is known, and at most so many instructions."""
        imported = Imports(self.image.traces)
        memory = Memory(self.image.constant, shared=self._shared)
        memory.writes = [] if self.image.traces else None
        follower = Follower(self.program, memory, imported, self.apart, most=min(most, self.left))
        why = ""
        try:
            follower.call(IMAGE + entry)
        except Unknown as error:
            why = str(error)
        if follower.lost:
            why = f"a jump to where nobody knows at {follower.lost[0] - IMAGE:#x}"
        if follower.cut & imported.entries:
            why = "a function that registers and calls itself"
        called = {site - IMAGE for site in follower.called}
        entries = {found - IMAGE for found in imported.entries}
        self.results[entry] = _Result(imported.records, imported.opened, called, entries, imported.effects, why)
        self.called |= called
        self.steps += follower.work
        self.shown |= imported.shown
        self.entered |= follower.entered
        self.kept += held.kept(memory.writes or ())

    def around(self, sites: Iterable[int]) -> set[int]:
        """The functions that calls are in; a call in none is kept aside, and bytes that only look like one are not."""
        found: set[int] = set()
        for site in sites:
            bounds = self.functions.around(site - 1)
            if bounds is None:
                self.outside.add(site)
            elif self.is_instruction(bounds[0], site):
                found.add(bounds[0])
        return found

    def _parent(self, site: int) -> int | None:
        """The function that a call is in; None for one in none, and for bytes that only look like one."""
        bounds = self.functions.around(site - 1)
        return bounds[0] if bounds and self.is_instruction(bounds[0], site) else None

    def followed(self) -> held.Followed:
        return held.Followed(
            {address - IMAGE for entry in self.entered for address in self.program.graph(entry).after},
            self.called,
            {entry for result in self.results.values() for entry in result.entries},
            self._all_callers,
            self._parent,
        )

    def _all_callers(self, targets: Iterable[int]) -> dict[int, set[int]]:
        """Of each function, the ends of the calls and of all jumps that lead there."""
        found = {target: {*sites} for target, sites in self._callers(targets).items()}
        for part in self.layout.code:
            for site, target in calls.branches(self.data, part, found):
                found[target].add(site)
        return found

    def is_instruction(self, at: int, site: int) -> bool:
        """Whether an instruction of the function at `at` ends at `site`, as far as that can be told."""
        if self.exhausted:
            return True
        while at < site:
            step = self.image.step(IMAGE + at)
            if step.kind == END and step.next == step.address:
                return True  # no instruction here: what follows cannot be told, so that it counts
            at = step.next - IMAGE
        return at == site

    def follow(self, sites: set[int], more: Iterable[int] = ()) -> None:
        """Follows the functions around calls, and their callers for as long as those may know more."""
        entered = {entry for result in self.results.values() for entry in result.entries}
        pending = self.around(sites - self.called) | ({*more} - entered)
        for _ in range(LEVELS):
            pending -= self.results.keys()
            for entry in sorted(pending):
                if self.exhausted:
                    return
                self.run(entry)
            if not pending:
                return
            inner = {e for result in self.results.values() for e in result.entries} - self.results.keys()
            depending = {entry for entry in pending if self.results[entry].depends}
            callers = self._callers(inner | depending)
            self.superseded |= {entry for entry in depending if callers[entry]}
            pending = self.around(
                site for entry in callers for site in callers[entry] if entry in depending or site not in self.called
            )


def read(data: Bytes, layout: Layout, dyn: Dynamic, where: str) -> list[ReadRegistration]:
    """The registrations of a library, in the order of their calls."""
    return _searched(Image(data, layout, dyn, where))[1]


def trace(data: Bytes, layout: Layout, dyn: Dynamic, where: str) -> tuple[list[ReadRegistration], Users]:
    """The registrations with the place of each byte of their texts, and who else uses such bytes."""
    search, found = _searched(Image(data, layout, dyn, where, traces=True))
    places = {place for row in found for place in row.places} - {NOWHERE}
    uses = held.uses(search.image, search.functions, search.followed(), places) if places else ()
    return found, Users(sorted([*uses, *search.kept]), search.shown)


def _searched(image: Image) -> tuple[_Search, list[ReadRegistration]]:
    functions = Functions(image.data, image.layout)
    program = Program(image, functions, lambda name: name.startswith((*OPENS, *DEFINES)), never_returns)
    search = _Search(image.data, image.layout, image, functions, program)
    (opens, defines), search.loading = search.sites(OPENS, DEFINES)
    search.follow(opens)
    search.follow(defines, search.loading)
    found = _registrations(search, defines)
    relies = frozenset(image.relied(search.entered) - {""})
    return search, [replace(row, relies=relies) for row in found]


def _registrations(search: _Search, defines: set[int]) -> list[ReadRegistration]:
    kept = {entry: result for entry, result in search.results.items() if entry not in search.superseded}
    known = {
        record.chain[-1]
        for result in kept.values()
        for record in result.records
        if record.text.text is not None and record.space is not None and not result.why
    }
    texts = {record.text.text for result in kept.values() for record in result.records if not result.why}
    found: dict[tuple[object, ...], ReadRegistration] = {}
    reached = {site for result in kept.values() for site in result.called}
    for entry, result in sorted(kept.items()):
        for record in result.records:
            if record.text.text is None and record.space is None and record.text.known in texts:
                continue  # shown to somebody, and registered here
            text = Text(None, record.text.known) if result.why else record.text
            standalone = len(record.entries) == 1 or entry in search.outside
            if record.chain[-1] in known and (text.text is None or record.space is None) and standalone:
                continue  # the same call with what its caller gives
            site = record.chain[-1] - IMAGE
            row = ReadRegistration(
                text.text, text.known, record.space, site, record.entries[-1] - IMAGE, result.why, text.places
            )
            found.setdefault((site, text.text, text.known, record.space, text.places), row)
    for site in sorted((defines | search.kept_calls()) - reached):
        bounds = search.functions.around(site - 1)
        if bounds is None or search.is_instruction(bounds[0], site):
            why = "not reached by what was followed" if bounds else "in no function that a table names"
            why = TOO_MUCH if search.exhausted else why
            found[site, None, "", None] = ReadRegistration(None, "", None, site, bounds[0] if bounds else 0, why)
    for site, why in search.doubts():
        entry, _ = search.functions.around(site - 1) or (0, 0)
        found[why,] = ReadRegistration(None, "", None, site, entry, why)
    if search.exhausted:  # a helper may have callers that were not followed, though it was
        found[()] = ReadRegistration(None, "", None, 0, min(search.results, default=0), TOO_MUCH)
    return sorted(found.values(), key=lambda row: (row.site, row.space or "", row.text or "", row.known, row.places))
