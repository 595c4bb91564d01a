"""Where a library's code calls a function: found by the bytes of the instructions, not by decoding all of it."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator

from .layout import Bytes, Part, release

# What may stand before the jump of a stub, as linkers write them: a landing pad, the number of the slot, a prefix.
BEFORE = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?(?:\x41\xbb....)?[\xf2\x66]?", re.DOTALL)
LONGEST = 11
CHUNK = 1 << 20
_distance = struct.Struct("<i").unpack_from


def stubs(data: Bytes, part: Part, slots: Collection[int]) -> Iterator[tuple[int, int, bool]]:
    """Where a part of the code leads through slots: an address, the slot, and whether it is a call, whose end is given.

    Jumps are the stubs that calls lead to, or calls in the place of a return; both begin where they stand.
    """
    for form, is_call in ((b"\x25", False), (b"\x15", True)):
        for end, slot in _ending(data, part, form, slots):
            at = end - 6 - part.address + part.start
            if at >= part.start and data[at] == 0xFF:
                yield end if is_call else end - 6, slot, is_call


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
        halves: dict[int, set[int]] = {}
        for start, end in spans:
            for half in range(max(start - base - CHUNK - 9 >> 16, -1 << 15), min((end - base >> 16) + 1, 1 << 15)):
                halves.setdefault(half >> 8 & 0xFF, set()).add(half & 0xFF)
        if halves:
            lows = ((high, b"".join(b"\\x%02x" % low for low in sorted(halves[high]))) for high in halves)
            yield code, base, b"(?:" + b"|".join(b"[%b]\\x%02x" % (low, high) for high, low in lows) + b")"
        release(data, first, first + len(code))


def _ending(data: Bytes, part: Part, before: bytes, places: Collection[int]) -> Iterator[tuple[int, int]]:
    """Where a byte and the distance to one of some places end, and the place."""
    spans: list[tuple[int, int]] = []
    for place in sorted(places):
        near = bool(spans) and place - spans[-1][1] < 1 << 16
        spans[-1:] = [(spans[-1][0], place)] if near else [*spans[-1:], (place, place)]
    for code, base, halves in pieces(data, part, spans):
        behind = base + 4
        found = re.finditer(before + b"(?=.." + halves + b")", code, re.DOTALL)  # given bytes are found fast
        good = [at for at in [match.end() for match in found] if behind + at + _distance(code, at)[0] in places]
        yield from ((behind + at, behind + at + _distance(code, at)[0]) for at in good)


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
    for opcode in (b"\xe8", b"\xe9"):
        yield from _ending(data, part, opcode, targets)
