"""Functions that are followed once, apart from their callers, and what every call like that does.

A function may be given the address of an object of which nobody knows more than that it leads to none of our memory. As
long as it only reads that, and nothing else of its caller's, it does the same at each call; most are destructors of
what torch made. Others are followed where they are called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from . import machine
from .effects import EFFECTS, TWICE
from .image import BESIDE
from .imports import Imports, Space
from .machine import FOREIGN, HEAP, IMAGE, NOTHING, RSP, STACK, STACK_SIZE, Foreign, Item, Memory, Value, Word, side
from .program import Program, Unknown
from .run import GIVEN, SAVED, SCRATCH, Follower
from .texts import known, quiet

OBJECT = 1 << 12  # bytes of an object, to both sides of the address that leads there
LOW = machine.ALIGNED - 1  # bits of an address that code may ask for
TRIES, FAILED = 8, 3  # of a function, each with another object; what one that says nothing counts more
MOST, WORK = 1_000_000, 20  # instructions of one, and those that a call counts as
ASIDE = (0, 10, 11)  # registers in which something may be given too
KEPT = sum(1 << register for register in SAVED)
STACKS = range(STACK, STACK + STACK_SIZE)
CALLERS = "what its caller keeps"
Object = tuple[int, int] | None  # the register that leads there, and the low bits of the address


class Around(Memory):
    """Raises Unknown where something is written that is not the function's own, or read that was not given.

    `file(address)`: what the file loads there; `level`: what of an object is known, FOREIGN or nothing.
    """

    def __init__(self, file: Callable[[int], Value], level: Foreign | None, *, shared: bool) -> None:
        super().__init__(self._lies, shared=shared)
        self.file, self.level, self.writes = file, level, []
        self.top = STACKS.stop - 4096  # where the function's frame ends
        self.given = self.objects = HEAP  # where the object that is given ends, and all
        self.read: set[int] = set()
        self.own: set[int] = set()  # words that it wrote
        self.lost: set[int] = set()  # where objects begin of whose addresses something unknown was made
        self.forgets = False

    def object(self) -> int:
        address = self.allocate(2 * OBJECT) + OBJECT
        self.objects = self._next
        return address

    def _lies(self, address: int) -> Value:
        if HEAP <= address < self.given:
            self.read.add(address)
            return None if self.forgets else self.level
        if self.given <= address < self.objects or (address in STACKS and address not in self.own):
            raise Unknown(CALLERS)
        return self.file(address) if address < HEAP else None

    def put(self, address: int, word: Word) -> None:
        self.forget(address, address)
        self.own.add(address)
        super().put(address, word)

    def put_bytes(self, address: int, parts: Sequence[Item]) -> None:
        self.own |= {*range(address & ~7, address + len(parts), 8)}  # of which it reads the rest
        super().put_bytes(address, parts)

    def forget(self, start: int, end: int) -> None:
        if start < self.objects or max(start, end - 1) >= self.top:
            raise Unknown(CALLERS)
        super().forget(start, end)

    def _free(self, extent: tuple[int, int]) -> None:
        if HEAP <= extent[0] < self.objects:
            self.lost.add(extent[0])
        super()._free(extent)

    def forget_escaped(self) -> None:
        self.forgets = True
        super().forget_escaped()


@dataclass(frozen=True, slots=True)
class CallEffect:
    """What a function does. `registers`: those that it leaves otherwise, `back` those in which it gives the object's
    address back, with a distance; `read`: distances of words that must lead nowhere; `lost`: registers of whose
    addresses something unknown is made; `called` and `entered` as of a Follower."""

    registers: dict[int, Value]
    back: dict[int, int]
    read: list[int]
    lost: list[int]
    forgets: bool
    called: set[int]
    entered: set[int]

    @property
    def quiet(self) -> bool:
        return not self.back and not any(map(_address, self.registers.values()))


# What a function is taken to do where it calls itself, and is then held to; of objects that could not be told.
QUIET = CallEffect(dict.fromkeys((0, *SCRATCH)), {}, [], [*ASIDE], True, set(), set())


class Apart:
    """What is known of functions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[tuple[int, bool, bool, Object], CallEffect | None] = {}
        self._tries = Counter[int]()

    def __call__(self, f: Follower, entry: int) -> bool:
        """Does what a function does; False where that is not known, and nothing was done."""
        general = f.registers.general
        given, stack = [general[register] for register in GIVEN], general[RSP]
        objects = [(n, value & LOW) for n, value in zip(GIVEN, given, strict=True) if _address(value)]
        if len(objects) > 1:  # of the distance between them more is known where it is called
            return False
        if not isinstance(stack, int) or stack & LOW or any(map(_matters, given)) or _holds_addresses(f):
            return False
        levels = (None,) if None in given else (FOREIGN, None)
        return any(self._does(f, entry, objects[0] if objects else None, level) for level in levels)

    def _does(self, f: Follower, entry: int, object_: Object, level: Foreign | None) -> bool:
        effect, general, memory = self._known(f, entry, object_, level), f.registers.general, f.memory
        start = general[object_[0]] if object_ else 0
        if not effect or not isinstance(start, int):
            return False
        if {*effect.lost} & {*GIVEN} and any(isinstance(general[n], int) and not _address(general[n]) for n in GIVEN):
            return False  # a number may decide whether it is lost
        if not all(_nowhere(memory.word(start + at), level) for at in effect.read):
            return False
        f.called |= effect.called
        f.entered |= effect.entered
        f.steps += WORK
        memory.lose(*(general[register] for register in effect.lost))
        if effect.forgets:
            memory.forget_escaped()
        for register, value in (effect.registers | {n: start + at for n, at in effect.back.items()}).items():
            general[register] = value
        f.registers.vector, f.registers.flags = [NOTHING] * 32, (None,) * 4
        return True

    def _known(self, f: Follower, entry: int, object_: Object, level: Foreign | None) -> CallEffect | None:
        key = entry, f.memory.shared, level is None, object_
        if key not in self._found and self._tries[entry] < TRIES:
            self._tries[entry] += 1
            before = len(self._found)
            self._found[key] = None if object_ else QUIET
            effect = self._tried(f, entry, object_, level)
            if self._found[key] and not (effect and effect.quiet):  # nor are those that call it what they seemed
                self._found |= dict.fromkeys([*self._found][before:])
            self._found[key] = effect
            self._tries[entry] += 0 if effect else FAILED
        return self._found.get(key)

    def _tried(self, f: Follower, entry: int, object_: Object, level: Foreign | None) -> CallEffect | None:
        imports = Imports(self.program.image.traces)
        memory = Around(self.program.image.constant, level, shared=f.memory.shared)
        do, above = _careful(imports, memory), f.above + len(f.frames)
        follower = Follower(self.program, memory, do, self, most=min(MOST, f.most), above=above)
        try:
            effect = _followed(follower, memory, entry, object_)
        except Unknown:
            return None
        finally:
            f.steps += follower.work
        return effect if imports == Imports(self.program.image.traces) else None


def _careful(imports: Imports, memory: Around) -> Callable[[Follower, str, int], bool]:
    """Does what functions of others do that neither register nor change an object."""

    def import_(f: Follower, name: str, site: int) -> bool:
        if f.program.registers(name) or name in EFFECTS or name in BESIDE or name in TWICE:
            raise Unknown("more than a call tells")
        given = any(isinstance(v, int) and HEAP <= v < memory.objects for v in map(f.argument, range(len(GIVEN))))
        if given and known(name) is not quiet:
            raise Unknown(CALLERS)
        return imports(f, name, site)

    return import_


def _followed(f: Follower, memory: Around, entry: int, object_: Object) -> CallEffect:
    """Raises Unknown where a function does not leave alone what is its caller's."""
    general = f.registers.general
    for register in GIVEN:
        general[register] = memory.level
    start = memory.object() + object_[1] if object_ else 0
    if object_:
        general[object_[0]], memory.given = start, memory.objects
    for register in ASIDE:
        general[register] = memory.object()
    general[RSP], before = memory.top, {n: value for n, value in enumerate(general) if n != RSP}
    alone = f.call(entry) and not any(f.program.borrows(one, KEPT) for one in f.entered)
    kept = f.program.image.traces and any(_address(word) for _, word in memory.writes or ())
    if not alone or kept or f.lost or _holds_addresses(f):
        raise Unknown(CALLERS)
    new = {n: f.registers.general[n] for n, value in before.items() if f.registers.general[n] is not value}
    back = {n: value - start for n, value in new.items() if isinstance(value, int) and HEAP <= value < memory.given}
    registers = {n: value for n, value in new.items() if n not in back}
    if any(_address(value) and not IMAGE <= value < HEAP for value in registers.values()):
        raise Unknown(CALLERS)
    lost = [n for n, value in before.items() if isinstance(value, int) and memory.extent(value)[0] in memory.lost]
    read = [address - start for address in memory.read]
    return CallEffect(registers, back, read, lost, memory.forgets, f.called, f.entered)


def _address(word: object) -> TypeGuard[int]:
    return isinstance(word, int) and side(word) != 0


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
