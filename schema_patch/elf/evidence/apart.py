"""Functions that are followed once, apart from their callers, and what every call like that does.

Around such a function lie objects of which nobody knows more than that they lead to none of our memory: those that it
is given addresses of. As long as it only reads the first and leaves all
else alone, it does the same at each call; most are destructors of what torch made. Others are followed where called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from .effects import EFFECTS, TWICE
from .image import BESIDE
from .imports import Imports, Space
from .machine import (
    ALIGNED,
    FOREIGN,
    HEAP,
    IMAGE,
    NOTHING,
    RSP,
    STACK,
    STACK_SIZE,
    Foreign,
    Item,
    Memory,
    Value,
    Word,
    side,
)
from .program import Program, Unknown
from .run import GIVEN, SAVED, SCRATCH, Follower
from .texts import known, quiet

OBJECT = 1 << 12  # bytes of an object, to both sides of the address that leads there
LOW = ALIGNED - 1  # bits of an address that code may ask for
TRIES, FAILED = 8, 3  # of a function, each with other kinds of values; what one that says nothing counts more
MOST = 100_000  # instructions
WORK = 20  # instructions that a call counts as
ASIDE = (0, 10, 11)  # registers in which something may be given too
STACKS = range(STACK, STACK + STACK_SIZE)
NUMBER = -1  # or what leads nowhere
CALLERS = "what its caller keeps"
Kinds = tuple[int | None, ...]  # of the stack and of what is given: the low bits of an address, NUMBER, or None
Found = Value | tuple[int, int]  # an address as a register that was given, and a distance


class Around(Memory):
    """Raises Unknown where something of the caller's is written or kept, or read that was not given.

    `file(address)`: what the file loads there; `level`: what of objects is known, FOREIGN or nothing; `top`: where the
    function's own frame ends.
    """

    def __init__(self, file: Callable[[int], Value], level: Foreign | None, top: int, *, shared: bool) -> None:
        super().__init__(self._lies, shared=shared)
        self.file, self.level, self.top, self.writes = file, level, top, []
        self.given = self.objects = HEAP  # where those that are given end, and all of them
        self.read: set[int] = set()
        self.own: set[int] = set()  # words that it wrote, of the stack
        self.library: set[int] = set()
        self.lost: set[int] = set()  # where objects begin of whose addresses something unknown was made
        self.forgets = False

    def object(self, low: int = 0) -> int:
        address = self.allocate(2 * OBJECT) + OBJECT
        self.objects = self._next
        return address + low

    def _lies(self, address: int) -> Value:
        if HEAP <= address < self.given:
            self.read.add(address)
            return None if self.forgets else self.level
        if self.given <= address < self.objects or (address in STACKS and address not in self.own):
            raise Unknown(CALLERS)
        return self.file(address) if address < HEAP else None

    def put(self, address: int, word: Word) -> None:
        self.forget(address, address)
        (self.library if address < HEAP else self.own).add(address)
        super().put(address, word)

    def forget(self, start: int, end: int) -> None:
        if HEAP <= start < self.objects or max(start, end - 1) >= self.top:
            raise Unknown(CALLERS)
        super().forget(start, end)

    def put_bytes(self, address: int, parts: Sequence[Item]) -> None:
        self.own |= {*range(address & ~7, address + len(parts), 8)}  # of which it reads the rest
        super().put_bytes(address, parts)

    def _free(self, extent: tuple[int, int]) -> None:
        if HEAP <= extent[0] < self.objects:
            self.lost.add(extent[0])
        super()._free(extent)

    def forget_escaped(self) -> None:
        self.forgets = True
        super().forget_escaped()


@dataclass(frozen=True, slots=True)
class Effect:
    """What a function does. `registers`: those that it leaves otherwise; `read`: words that must lead nowhere; `words`:
    of the library; `called` and `entered` as of a Follower."""

    registers: dict[int, Found]
    read: list[tuple[int, int]]
    words: dict[int, Word]
    lost: list[int]
    forgets: bool
    called: set[int]
    entered: set[int]

    @property
    def quiet(self) -> bool:
        return not self.words and not any(isinstance(v, tuple) or _address(v) for v in self.registers.values())


# What a function is taken to do where it calls itself, and is then held to; of objects that could not be told.
QUIET = Effect(dict.fromkeys((0, *SCRATCH)), [], {}, [*ASIDE], True, set(), set())


class Apart:
    """What is known of functions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[tuple[int, bool, bool, Kinds], Effect | None] = {}
        self._tries = Counter[int]()

    def __call__(self, f: Follower, entry: int) -> bool:
        """Does what a function does; False where that is not known, and nothing was done."""
        general = f.registers.general
        given = [general[register] for register in (RSP, *GIVEN)]
        if any(map(_matters, given)) or not isinstance(given[0], int) or _holds_addresses(f):
            return False
        if sum(map(_address, given)) > 2:  # of distances between them more is known where it is called
            return False
        kinds = tuple(map(_kind, given))
        return any(
            self._does(f, entry, kinds, level) for level in (FOREIGN, None) if level is None or None not in given
        )

    def _does(self, f: Follower, entry: int, kinds: Kinds, level: Foreign | None) -> bool:
        effect = self._known(f, entry, kinds, level)
        general = f.registers.general
        if (
            effect
            and any(isinstance(general[n], int) and not _address(general[n]) for n in GIVEN)
            and {*effect.lost} & {*GIVEN}
        ):
            return False
        if not effect or not all(_nowhere(f.memory.word(_at(general, at)), level) for at in effect.read):
            return False
        f.called |= effect.called
        f.entered |= effect.entered
        f.steps += WORK
        for address, word in effect.words.items():
            f.memory.put(address, word)
        f.memory.lose(*(general[register] for register in effect.lost))
        if effect.forgets:
            f.memory.forget_escaped()
        new = {register: _at(general, v) if isinstance(v, tuple) else v for register, v in effect.registers.items()}
        for register, value in new.items():
            general[register] = value
        f.registers.vector = [NOTHING] * 32
        f.registers.flags = (None,) * 4
        return True

    def _known(self, f: Follower, entry: int, kinds: Kinds, level: Foreign | None) -> Effect | None:
        key = entry, f.memory.shared, level is None, kinds
        if key not in self._found and self._tries[entry] < TRIES:
            self._tries[entry] += 1
            before = len(self._found)
            self._found[key] = None if any(kind is not None for kind in kinds[1:]) else QUIET
            effect = self._tried(f, entry, kinds, level)
            if self._found[key] and not (effect and effect.quiet):  # nor are those that call it what they seemed
                for other in [*self._found][before:]:
                    self._found[other] = None
            self._found[key] = effect
            self._tries[entry] += 0 if effect else FAILED
        return self._found.get(key)

    def _tried(self, f: Follower, entry: int, kinds: Kinds, level: Foreign | None) -> Effect | None:
        imports = Imports(self.program.image.traces)
        top = STACKS.stop - 4096 + (kinds[0] or 0)
        memory = Around(self.program.image.constant, level, top, shared=f.memory.shared)
        do, above = _careful(imports, memory), f.above + len(f.frames)
        follower = Follower(self.program, memory, do, self, most=min(MOST, f.most), above=above)
        try:
            effect = _followed(follower, memory, entry, kinds)
        except Unknown:
            return None
        finally:
            f.steps += follower.steps
        return effect if imports == Imports(self.program.image.traces) else None


def _careful(imports: Imports, memory: Around) -> Callable[[Follower, str, int], bool]:
    """Does what functions of others do that neither register nor are given an object."""

    def import_(f: Follower, name: str, site: int) -> bool:
        if f.program.registers(name) or name in EFFECTS or name in BESIDE or name in TWICE:
            raise Unknown("more than a call tells")
        given = any(isinstance(v, int) and HEAP <= v < memory.objects for v in map(f.argument, range(len(GIVEN))))
        if given and known(name) is not quiet:
            raise Unknown(CALLERS)
        return imports(f, name, site)

    return import_


def _followed(f: Follower, memory: Around, entry: int, kinds: Kinds) -> Effect:
    """Raises Unknown where a function does not leave alone what is its caller's."""
    general, starts = f.registers.general, dict[int, int]()
    for register, kind in zip(GIVEN, kinds[1:], strict=True):
        general[register] = memory.level
        if kind is not None:
            starts[register] = general[register] = memory.object(kind)
    memory.given = memory.objects
    for register in ASIDE:
        general[register] = memory.object()
    general[RSP] = memory.top
    before = general[:]
    borrowed = sum(1 << register for register in SAVED)
    alone = f.call(entry) and not any(f.program.borrows(one, borrowed) for one in f.entered)
    if not alone or f.lost or _holds_addresses(f):
        raise Unknown(CALLERS)

    def place(address: int) -> tuple[int, int]:
        return next((n, address - start) for n, start in starts.items() if -OBJECT <= address - start < OBJECT)

    registers: dict[int, Found] = {}
    for register, value in enumerate(f.registers.general):
        if value is before[register]:
            continue
        inside = isinstance(value, int) and HEAP <= value < memory.given
        registers[register] = place(value) if inside else value  # type: ignore[arg-type]
        if _address(value) and not inside and not IMAGE <= value < HEAP:
            raise Unknown(CALLERS)
    words = {address: memory.words.get(address) for address in memory.library}
    read = [place(address) for address in memory.read]
    leads = any(_address(word) and not IMAGE <= word < HEAP for word in words.values())
    keeps = f.program.image.traces and any(_address(word) for _, word in memory.writes or ())
    if leads or keeps or (words and read):
        raise Unknown(CALLERS)
    lost = [n for n, start in enumerate(before) if isinstance(start, int) and memory.extent(start)[0] in memory.lost]
    return Effect(registers, read, words, lost, memory.forgets, f.called, f.entered)


def _address(word: object) -> TypeGuard[int]:
    return isinstance(word, int) and side(word) != 0


def _kind(value: Value) -> int | None:
    return value & LOW if _address(value) else None


def _at(general: list[Value], place: tuple[int, int]) -> int:
    start = general[place[0]]
    assert isinstance(start, int)  # or it was of another kind
    return start + place[1]


def _matters(value: Value) -> bool:
    """Whether a function does more with a value than is told: a library to register in, a function of others."""
    return value < IMAGE if _address(value) else isinstance(value, Foreign) and not _nowhere(value, None)


def _nowhere(word: Word, level: Foreign | None) -> bool:
    """Whether a word leads to none of our memory; also one of which that is not known, if `level` is None. Of numbers
    more is known when a function is followed where it is called."""
    return not isinstance(word.tag, Space) if isinstance(word, Foreign) else word is None and not level


def _holds_addresses(f: Follower) -> bool:
    """Whether vectors hold any; they are given in them too."""
    return any(_address(word) for words in f.registers.vector if words is not NOTHING for word in words)
