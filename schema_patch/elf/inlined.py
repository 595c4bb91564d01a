"""Strings that x86-64 code builds in memory, because the compiler stored them nowhere.

g++ turns `std::string("gemv(Tensor x) -> Tensor")` into moves of constants, up to some 200 bytes of text, at -O2 in
C++20 and at -O3 before; torch's `m.def` makes such a string of every schema. The text then is no string in the file:
its pieces of 16 bytes lie among the constants, the rest in instructions. This follows the moves:

    call   operator new               rax is the new string
    movdqa 0x406b(%rip), %xmm0        a piece of 16 bytes from the constants
    movups %xmm0, (%rax)              goes to the start
    movabs $"> Tensor", %rcx          pieces of 8, 4, 2 and 1 byte
    mov    %rcx, 0x2d(%rax)           may overlap
    movb   $0, 0x35(%rax)             the end, where its place is known

Knows these instructions and steps over all others. A string counts only when every byte of it is known and its length
stands in the code too, so that none is taken cut short; one whose start alone is known is told as such, as happens to
some when g++ may use AVX. clang and icpx keep the string and need none of this.

Only the surroundings of calls to the function that takes such a string are read, where they can be found.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterator

from .layout import Bytes, release

LONGEST = 2048  # bytes of code that build one string; the longest seen were 400
LOOK_BACK = 1024  # for a constant that is put in a register once and used for many strings
BEFORE_CALL = 64  # where the length of the string is handed to the allocation
SURROUNDINGS = 1 << 16  # of a call; a function that registers a hundred operators has 40,000 bytes
LANDING_PAD = b"\xf3\x0f\x1e\xfa"  # endbr64
CHUNK = 1 << 18

# Opcodes with their prefixes; the operands are read by hand.
# SSE, AVX and AVX-512, the last without masks.
EVEX = rb"\x62[\x61\x71\xe1\xf1][\x7c-\x7f\xfc-\xff][\x08\x28\x48]"
VECTOR = rb"(?:[\x66\xf3]?[\x40-\x4f]?\x0f|\xc5[\x78-\x7f\xf8-\xff]|" + EVEX + rb")"
TOKEN = re.compile(
    rb"(?P<vector>" + VECTOR + rb"[\x10\x11\x28\x29\x6f\x7f])"
    rb"|(?P<constant>[\x48\x49][\xb8-\xbf])"
    rb"|(?P<general>\x66?[\x40-\x4f]?\x89)"
    rb"|(?P<immediate>\x66?[\x40-\x4f]?\xc7|[\x40-\x4f]?\xc6)"
    rb"|(?P<short>\x41?[\xb8-\xbf])"
    rb"|(?P<arithmetic>[\x48\x49][\x81\x83][\xc0-\xf7])"
    rb"|(?P<other>[\x48-\x4f][\x8b\x8d])"
    rb"|(?P<call>\xe8|\xff\x15)"
)
# Worth a look: a vector loaded from the constants and stored to (%rax), or eight characters put in a register.
ANCHOR = re.compile(
    VECTOR + rb"[\x10\x28\x6f][\x05\x0d\x15\x1d\x25\x2d\x35\x3d]"
    rb"(?=.{4,80}?" + VECTOR + rb"[\x11\x29\x7f][\x00\x08\x10\x18\x20\x28\x30\x38])"
    rb"|[\x48\x49][\xb8-\xbf][ -~]{8}",
    re.DOTALL,
)
LOADS = frozenset(b"\x10\x28\x6f")
RAX, RIP = 0, 5
KEPT_BY_CALLS = frozenset({3, 5, 12, 13, 14, 15})  # rbx, rbp, r12 to r15

Load = Callable[[int, int], bytes]


def strings(
    data: Bytes, start: int, end: int, address: int, load: Load, calls: Collection[int]
) -> Iterator[tuple[bytes, int, bool]]:
    """The strings built by the code in data[start:end], which runs at `address`: bytes, place, and if all is known.

    `load(address, size)` reads constants: the bytes at an address, or none. `calls`: where the function that takes the
    strings is called.
    """
    for first, last in _windows(calls, start, end):
        code = _Code(data, start, end, address, load)
        for anchor in ANCHOR.finditer(data, first, last):
            if anchor.end() > code.at:
                yield from code.follow(anchor.start())
                release(data, 0, len(data))  # its constants are elsewhere


def calls(data: Bytes, start: int, end: int, address: int, slots: set[int], own: set[int]) -> Iterator[int]:
    """Where a function is called: at one of its `own` addresses, through a stub that jumps to it, or through a slot."""
    entries = set(own)
    for first in range(start, end, CHUNK):
        code = data[first : min(first + CHUNK + 5, end)]
        for opcode in (b"\xff\x25", b"\xff\x15") if slots else ():  # jump and call through a slot
            at = -2
            while (at := code.find(opcode, at + 2)) >= 0:
                here = address + first - start + at
                if here + 6 + int.from_bytes(code[at + 2 : at + 6], "little", signed=True) not in slots:
                    continue
                if opcode == b"\xff\x15":
                    yield first + at
                else:  # a stub may begin with a landing pad, and a prefix of the jump
                    pad = next((n for n in (4, 5) if code[max(0, at - n) : at].startswith(LANDING_PAD)), 0)
                    entries.add(here - pad)
        release(data, first, first + len(code))
    distance = struct.Struct("<i").unpack_from
    for entry in entries:
        for first in range(start, end, CHUNK):
            code = data[first : min(first + CHUNK + 4, end)]
            nearest, farthest = (entry - 5 - (address + at - start) for at in (first + len(code), first))
            for call in _call(nearest >> 16, farthest >> 16).finditer(code):
                at = call.start()
                if distance(code, at + 1)[0] == entry - 5 - (address + first - start + at):
                    yield first + at
            release(data, first, first + len(code))


def _call(least: int, most: int) -> re.Pattern[bytes]:
    """A call whose distance has one of these numbers in its upper half: all that may lead from a chunk to one place."""
    halves = b"|".join(re.escape(struct.pack("<h", half)) for half in range(least, most + 1))
    return re.compile(b"\xe8..(?:" + halves + b")", re.DOTALL)


def _windows(calls: Collection[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The surroundings of calls, merged; everything, where no call is found."""
    windows: list[tuple[int, int]] = []
    for at in sorted(calls):
        first, last = max(start, at - SURROUNDINGS), min(end, at + SURROUNDINGS)
        if windows and first <= windows[-1][1]:
            windows[-1] = (windows[-1][0], last)
        else:
            windows.append((first, last))
    yield from windows or [(start, end)]


class _Code:
    """What the registers and the string at rax hold, up to `at`."""

    def __init__(self, data: Bytes, start: int, end: int, address: int, load: Load) -> None:
        self.data, self.start, self.end, self.address, self.load = data, start, end, address, load
        self.at = self.called = start
        self.vectors: dict[int, bytes] = {}
        self.general: dict[int, bytes] = {}
        self.memory: dict[int, int] = {}

    def follow(self, anchor: int) -> Iterator[tuple[bytes, int, bool]]:
        """Runs over the code around an anchor, to the first call behind it."""
        self.at = max(self.at, anchor - LOOK_BACK)
        stop = min(anchor + LONGEST, self.end - 16)  # 16: the longest instruction
        while token := TOKEN.search(self.data, self.at, stop):
            self.at = token.end()
            if token.lastgroup != "call":
                self.move(token)
            elif self.is_call(token.group()):
                built, whole = self.built()
                if built:
                    yield built, self.at, whole
                self.memory, self.vectors, self.called = {}, {}, self.at
                self.general = {n: value for n, value in self.general.items() if n in KEPT_BY_CALLS}
                self.at += 4
                if self.at > anchor:
                    break

    def is_call(self, head: bytes) -> bool:
        """An e8 that leads out of the code is part of another instruction."""
        (distance,) = struct.unpack_from("<i", self.data, self.at)
        return head != b"\xe8" or self.start <= self.at + 4 + distance < self.end

    def move(self, token: re.Match[bytes]) -> None:
        form, head, at = token.lastgroup, token.group(), self.at
        if form == "constant":
            self.general[(head[1] & 7) | (head[0] & 1) << 3] = self.data[at : at + 8]
            self.at += 8
            return
        if form == "short":  # its bytes may as well be part of another instruction: none are skipped
            self.general[(head[-1] & 7) | (8 if head[0] == 0x41 else 0)] = self.data[at : at + 4]
            return
        if form == "arithmetic":  # g++ may make one constant out of another
            self.general.pop((head[2] & 7) | (head[0] & 1) << 3, None)
            return
        if form == "vector" and head[0] in (0x62, 0xC5):
            evex, rex = head[0] == 0x62, 0
            size = 16 << (head[3] >> 5 & 3) if evex else 32 if head[1] & 4 else 16
            register, place, offset, self.at = _operand(self.data, at, size if evex else 1)
            register |= (0 if head[1] & 0x80 else 8) | (16 if evex and not head[1] & 0x10 else 0)
        else:
            register, place, offset, self.at = _operand(self.data, at)
            size = 16
            before = head[-3:-2] if form == "vector" else head[-2:-1]
            rex = before[0] if before and before[0] & 0xF0 == 0x40 else 0
            register |= 8 if rex & 4 else 0
        place = -1 if rex & 1 and place == RAX else place  # r8
        if form == "vector":
            if place == RIP and head[-1] in LOADS:
                self.vectors[register] = self.load(self.address + self.at - self.start + offset, size)
            elif place == RAX and head[-1] not in LOADS:
                # Once only: what else writes to vector registers is not followed.
                self.store(offset, self.vectors.pop(register, b""))
        elif form == "other":  # loads something else
            self.general.pop(register, None)
        elif form == "general":
            size = 8 if rex & 8 else 2 if head[0] == 0x66 else 4
            if place == RAX:
                self.store(offset, self.general.get(register, b"")[:size])
        else:
            size = 1 if head[-1] == 0xC6 else 2 if head[0] == 0x66 else 4
            value = self.data[self.at : self.at + size]
            self.at += size
            if place == RAX and not register & 7:
                self.store(offset, value.ljust(8, b"\0") if rex & 8 else value)

    def store(self, offset: int, value: bytes) -> None:
        self.memory.update(enumerate(value, offset))

    def built(self) -> tuple[bytes, bool]:
        """The string at rax as far as it is known without a gap, and whether that is all of it."""
        text = bytearray()
        while len(text) in self.memory and self.memory[len(text)]:
            text.append(self.memory[len(text)])
        size = len(text)
        around = self.data[max(self.start, self.called - BEFORE_CALL, self.at - LONGEST - LOOK_BACK) : self.at]
        told = self.memory.get(size) == 0 or any(struct.pack("<I", n) in around for n in (size, size + 1))
        return bytes(text), told


def _operand(data: Bytes, at: int, unit: int = 1) -> tuple[int, int, int, int]:
    """A ModRM operand: register, what it is relative to (RAX, RIP, or -1 for all else), offset, and where it ends.

    `unit`: what an offset of one byte counts in; AVX-512 counts in sizes of its vectors.
    """
    mode, register, base = data[at] >> 6, data[at] >> 3 & 7, data[at] & 7
    at += 1
    if mode == 3:
        return register, -1, 0, at
    place = RIP if (mode, base) == (0, 5) else RAX if base == 0 else -1
    if base == 4:  # an index byte
        base = data[at] & 7
        at += 1
    wide = (4 if base == 5 else 0, 1, 4)[mode]
    offset = int.from_bytes(data[at : at + wide], "little", signed=True)
    return register, place, offset * unit if wide == 1 else offset, at + wide
