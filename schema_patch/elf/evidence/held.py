"""Who uses bytes of texts beside the registrations that were followed to them.

That is code and tables that refer to such bytes; and, though all that refers to them was followed, who calls a function
that holds them, who refers to a table that leads to them, and who may read where they are kept. Knows what was
followed, and what that wrote. Does not know what a schema is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from schema_patch.elf.frames import Functions

from .image import Image
from .machine import HEAP, IMAGE, STACK, Word
from .traced import NOWHERE, Traced
from .users import Ranges, in_code, others, runs

LARGEST = 1 << 16  # bytes of a table of addresses
TABLE = 1 << 14  # bytes of one of distances
Use = tuple[int, str]  # the address of a byte, and who uses what begins there


@dataclass(frozen=True, slots=True)
class Followed:
    """What was followed: instructions, and where calls end. `registering`: the functions from where one is entered to
    a registration, of which it does not matter who calls them.

    `callers`: of functions, where the calls end that lead to each; `parent`: the function that a call is in, None where
    it is no call.
    """

    instructions: Collection[int]
    calls: Collection[int]
    registering: Collection[int]
    callers: Callable[[Collection[int]], Mapping[int, Collection[int]]]
    parent: Callable[[int], int | None]


def uses(image: Image, functions: Functions, done: Followed, places: Collection[int]) -> Iterator[Use]:
    """Who else uses some bytes, but for those who may read where they are kept."""
    ranges = runs(places)
    holding = {
        entry: held for entry, held in _holding(image, functions, done, ranges).items() if entry not in done.registering
    }
    tables = [*_tables(image, done, ranges), *_distances(image, ranges)]
    targets = {place for place in places if not in_code(image, place)}.union(
        holding, *(range(first, slot + 8) for slot, first, _ in tables)
    )
    for address, who in others(image, functions, done.instructions, runs(targets)):
        yield from ((place, who) for place in holding.get(address, (address,)))
        yield from ((place, f"{who}, by a table") for slot, first, place in tables if first <= address < slot + 8)
    yield from _called(holding, done)


def _holding(image: Image, functions: Functions, done: Followed, ranges: Ranges) -> dict[int, set[int]]:
    """The functions whose code names bytes in some ranges, or has them in itself, with the first of each."""
    found: dict[int, set[int]] = {}
    for at in done.instructions:
        step = image.step(IMAGE + at)
        named = (step.place - IMAGE, *range(at, step.next - IMAGE))
        first = next((place for place in named if ranges.hold(place)), None)
        if first is not None:
            bounds = functions.around(at)
            found.setdefault(bounds[0] if bounds else at, set()).add(first)
    return found


def _tables(image: Image, done: Followed, ranges: Ranges) -> list[tuple[int, int, int]]:
    """The slots that were read and lead to bytes in some ranges: each with the address by which code names its table,
    as far as that was followed, and with the byte."""
    slots = [(slot, place) for slot, place in image.addresses() if ranges.hold(place) and image.was_read(slot)]
    named = sorted({image.step(IMAGE + at).place - IMAGE for at in done.instructions}) if slots else []
    found = []
    for slot, place in slots:
        first = named[bisect_right(named, slot) - 1]
        found.append((slot, first if 0 <= slot - first < LARGEST else slot, place))
    return found


def _distances(image: Image, ranges: Ranges) -> Iterator[tuple[int, int, int]]:
    """The same of tables that hold distances from their own beginning to strings, as clang makes them."""
    texts = ranges.starts
    named = [part for part in image.layout.sections if part.name.startswith(".rodata")]  # device code lies elsewhere
    for part in named or [part for part in image.layout.constants if part not in image.layout.code]:
        base = part.address + -part.address % 4
        words = memoryview(
            image.layout.constant(image.data, base, part.address + part.end - part.start - base & ~3)
        ).cast("i")
        ends = [at for at, word in enumerate(words) if texts[0] <= base + 4 * at + word < texts[-1] + TABLE]
        for at in ends:
            slot = base + 4 * at
            for text in texts[bisect_left(texts, slot + words[at] - TABLE) : bisect_right(texts, slot + words[at])]:
                first = text - words[at]  # where the table would begin
                table = words[first - base >> 2 : at + 1] if first >= base and not first % 4 else ()
                if table and all(_begins(image, first + word) for word in table):
                    yield slot, first, text


def _begins(image: Image, address: int) -> bool:
    """Whether a string may begin at an address."""
    return image.layout.constant(image.data, address - 1, 1) == b"\0"


def _called(holding: Mapping[int, set[int]], done: Followed) -> Iterator[Use]:
    """The calls of functions which hold bytes that were not followed, also by way of functions that were."""
    pending = dict(holding)
    carried: dict[int, set[int]] = {entry: {*places} for entry, places in holding.items()}
    while pending:
        now, pending = pending, {}
        for entry, sites in sorted(done.callers(now).items()):
            for site in sorted(sites):
                caller = done.parent(site)
                if caller is None or caller == entry or (site in done.calls and caller in done.registering):
                    continue
                if site not in done.calls:
                    yield from ((place, f"the code at {site:#x}, by a call") for place in now[entry])
                elif more := now[entry] - carried.setdefault(caller, set()):
                    carried[caller] |= more
                    pending.setdefault(caller, set()).update(more)


def kept(writes: Iterable[tuple[int, Word]]) -> Iterator[Use]:
    """The bytes, copied or pointed to, that code put where the library writes, itself or by way of the heap."""
    words: dict[int, list[Word]] = {}
    for address, word in writes:
        words.setdefault(address, []).append(word)
    for slot in [address for address in words if address < HEAP]:
        who = f"what reads {slot - IMAGE:#x}, where it is kept" if slot > IMAGE else "what reads where it is kept"
        pending, seen = [slot], set[int]()
        while pending:
            at = pending.pop()
            while at in words and at not in seen:
                seen.add(at)
                for word in words[at]:
                    yield from ((place, who) for place in _places(word))
                    if isinstance(word, int) and IMAGE <= word < HEAP:
                        yield word - IMAGE, who
                    elif isinstance(word, int) and HEAP <= word < STACK:
                        pending.append(word & ~7)
                at += 8 if at >= HEAP else STACK  # a block on the heap is read to its end, a slot alone


def _places(word: Word) -> Iterator[int]:
    for part in word if isinstance(word, tuple) else (word,):
        if type(part) is Traced:
            yield from (place for place in part.places if place != NOWHERE)
