"""Where a library's code calls a function: found by the bytes of the instructions, not by decoding all of it."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator

from .layout import Bytes, Part, release

# What may stand before the jump of a stub, as linkers write them: a landing pad, the number of the slot, a prefix.
BEFORE = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?(?:\x41\xbb....)?[\xf2\x66]?", re.DOTALL)
LONGEST = 11
CHUNK = 1 << 18
_distance = struct.Struct("<i").unpack_from


def stubs(data: Bytes, part: Part, slots: Collection[int]) -> Iterator[tuple[int, int, bool]]:
    """Where a part of the code leads through slots: an address, the slot, and whether it is a call, whose end is given.

    Jumps are the stubs that calls lead to, or calls in the place of a return; both begin where they stand.
    """
    for first in range(part.start, part.end, CHUNK) if slots else ():
        code = data[first : min(first + CHUNK + 5, part.end)]
        base = part.address + first - part.start
        for opcode in (b"\xff\x25", b"\xff\x15"):
            at = -1
            while 0 <= (at := code.find(opcode, at + 1)) < CHUNK:
                here = base + at
                slot = here + 6 + int.from_bytes(code[at + 2 : at + 6], "little", signed=True)
                if slot in slots:
                    yield (here + 6, slot, True) if opcode == b"\xff\x15" else (here, slot, False)
        release(data, first, first + len(code))


def entries(data: Bytes, part: Part, stub: int) -> Iterator[int]:
    """Where calls may enter a stub: before its jump there may be more."""
    at = stub - part.address + part.start
    before = data[max(part.start, at - LONGEST) : at]
    for size in range(len(before) + 1):
        if BEFORE.fullmatch(before, len(before) - size):
            yield stub - size


def pieces(data: Bytes, part: Part, spans: Collection[tuple[int, int]]) -> Iterator[tuple[bytes, int, bytes]]:
    """A part of the code: bytes, where they are, and a pattern of the upper half of distances from there to some spans
    of addresses."""
    for first in range(part.start, part.end, CHUNK) if spans else ():
        code = data[first : min(first + CHUNK + 5, part.end)]
        base = part.address + first - part.start
        near = {half for start, end in spans for half in range(start - base - CHUNK - 9 >> 16, (end - base >> 16) + 1)}
        halves = [re.escape(struct.pack("<h", half)) for half in sorted(near) if -1 << 15 <= half < 1 << 15]
        if halves:
            yield code, base, b"(?:" + b"|".join(halves) + b")"
        release(data, first, first + len(code))


def references(data: Bytes, part: Part, places: Collection[int]) -> Iterator[tuple[int, int]]:
    """Instructions that end in the distance of some places from them: where they end, and the place."""
    for code, base, halves in pieces(data, part, [(place, place) for place in places]):
        for match in re.finditer(halves, code, re.DOTALL):
            at = match.start() - 2
            if at >= 0 and base + at + 4 + _distance(code, at)[0] in places:
                yield base + at + 4, base + at + 4 + _distance(code, at)[0]


def branches(data: Bytes, part: Part, targets: Collection[int]) -> Iterator[tuple[int, int]]:
    """Jumps to some addresses that `direct` does not look for: conditional ones, and those over a short distance."""
    for site, target in references(data, part, targets):
        at = site - part.address + part.start
        if at - 6 >= part.start and data[at - 6] == 0x0F and 0x80 <= data[at - 5] < 0x90:
            yield site, target
    for target in targets:
        for site in range(max(target - 127, part.address + 2), target + 129):
            at = site - part.address + part.start
            short = data[at - 2 : at]
            jumps = len(short) == 2 and at <= part.end and (short[0] == 0xEB or 0x70 <= short[0] < 0x80)
            if jumps and site + int.from_bytes(short[1:], "little", signed=True) == target:
                yield site, target


def direct(data: Bytes, part: Part, targets: Collection[int]) -> Iterator[tuple[int, int]]:
    """Direct calls of and jumps to some addresses: where the instruction ends, and where it leads."""
    for code, base, halves in pieces(data, part, [(target, target) for target in targets]):
        for opcode in (b"\xe8", b"\xe9"):  # each alone, since bytes that are given are found fast
            for match in re.finditer(opcode + b"(?=.." + halves + b")", code, re.DOTALL):
                at = base + match.start() + 5
                to = at + _distance(code, match.start() + 1)[0]
                if to in targets:
                    yield at, to
