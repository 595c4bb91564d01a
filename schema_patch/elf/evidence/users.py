"""Who uses bytes of a library beside the code that was followed: instructions, tables of addresses, exported names.

What refers to no address of its own, such as code that goes through a table that it was given, is not seen.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from schema_patch.elf import dynamic
from schema_patch.elf.calls import pieces
from schema_patch.elf.frames import Functions
from schema_patch.elf.layout import Part

from .image import Image
from .machine import IMAGE

BEHIND = (0, 1, 2, 4)  # bytes of an instruction that may follow the distance in it
DISTANCE = struct.Struct("<i")
LONGEST = 11  # bytes of an instruction before the distance in it


@dataclass(frozen=True, slots=True)
class Users:
    """`found`: addresses that others refer to, and who; `shown`: of single bytes, the function that is given them."""

    found: list[tuple[int, str]] = field(default_factory=list)
    shown: dict[int, str] = field(default_factory=dict)

    def of(self, places: Sequence[int], index: int) -> str:
        """Who else uses one byte of a text, in words: what refers to it or to text right before it, or is given it."""
        first = index
        while first and places[first - 1] == places[first] - 1:
            first -= 1
        at = bisect_left(self.found, (places[first], ""))
        if at < len(self.found) and self.found[at][0] <= places[index]:
            return self.found[at][1]
        return self.shown.get(places[index], "")


@dataclass(frozen=True, slots=True)
class Ranges:
    starts: list[int]
    ends: list[int]

    def hold(self, address: int) -> bool:
        at = bisect_right(self.starts, address) - 1
        return at >= 0 and address < self.ends[at]


def others(image: Image, functions: Functions, followed: Collection[int], ranges: Ranges) -> Iterator[tuple[int, str]]:
    """Who refers to some bytes, by address. `followed`: the instructions whose use of them is known."""
    yield from _code(image, functions, followed, ranges)
    yield from ((address, f"a table of addresses at {slot:#x}") for slot, address in _slots(image, ranges))
    for symbol in dynamic.symbols(image.data, image.layout, image.dyn, image.where):
        if ranges.hold(symbol.value):
            yield symbol.value, f"the exported name {symbol.name}"


def runs(places: Iterable[int]) -> Ranges:
    """Bytes as ranges."""
    starts: list[int] = []
    ends: list[int] = []
    for place in sorted(places):
        if ends and ends[-1] == place:
            ends[-1] += 1
        else:
            starts.append(place)
            ends.append(place + 1)
    return Ranges(starts, ends)


def in_code(image: Image, place: int) -> bool:
    return any(part.holds(place) for part in image.layout.code)


def _slots(image: Image, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Addresses that the loader puts into tables of which nothing that was followed has read them."""
    for slot, address in image.addresses():
        if ranges.hold(address) and not image.was_read(slot):
            yield slot, address


def _code(image: Image, functions: Functions, followed: Collection[int], ranges: Ranges) -> Iterator[tuple[int, str]]:
    for part in image.layout.code if ranges.starts else ():
        for at, address in _distances(image, part, ranges):
            if any(a in followed and image.step(IMAGE + a).next - IMAGE > at for a in range(at - LONGEST, at)):
                continue
            bounds = functions.around(at)
            used = _instruction(image, bounds[0], at, address) if bounds else address
            if used and ranges.hold(used):
                yield used, f"the code at {at:#x}"


def _distances(image: Image, part: Part, ranges: Ranges) -> Iterator[tuple[int, int]]:
    """Where in the code the distance to one of the ranges stands, and the address that it leads to."""
    for code, base, halves in pieces(image.data, part, [*zip(ranges.starts, ranges.ends, strict=True)]):
        pattern = b"[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?=.." + halves + b")"
        for match in re.finditer(pattern, code, re.DOTALL):
            at = base + match.end()
            to = at + 4 + DISTANCE.unpack_from(code, match.end())[0]
            found = next((to + more for more in BEHIND if ranges.hold(to + more)), None)
            if found is not None:
                yield at, found


def _instruction(image: Image, start: int, at: int, address: int) -> int:
    """The place that the instruction names which holds a distance, in the function that begins at `start`; 0 where
    there is no such instruction. `address`: what is named if code cannot be told from data."""
    while start < at:
        step = image.step(IMAGE + start)
        if step.next == step.address:
            return address
        if start < at and step.next - IMAGE >= at + 4:
            return step.place and step.place - IMAGE
        start = step.next - IMAGE
    return 0
