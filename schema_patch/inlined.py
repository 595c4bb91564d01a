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
stands in the code too, so that none is taken cut short; about one in a hundred is lost for that when g++ may use AVX2.
clang and icpx keep the string and need none of this.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable, Iterator

LONGEST = 2048  # bytes of code that build one string; the longest seen were 400
LOOK_BACK = 1024  # for a constant that is put in a register once and used for many strings
BEFORE_CALL = 64  # where the length of the string is handed to the allocation

# Opcodes with their prefixes; the operands are read by hand.
VECTOR = rb"(?:[\x66\xf3]?[\x40-\x4f]?\x0f|\xc5[\x78-\x7f\xf8-\xff])"
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


def strings(data: mmap.mmap, start: int, end: int, address: int, load: Load) -> Iterator[bytes]:
    """The strings built by the code in data[start:end], which runs at `address`.

    `load(address, size)` reads constants: the bytes at an address, or none.
    """
    code = _Code(data, start, end, address, load)
    for anchor in ANCHOR.finditer(data, start, end):
        if anchor.end() > code.at:
            yield from code.follow(anchor.start())


class _Code:
    """What the registers and the string at rax hold, up to `at`."""

    def __init__(self, data: mmap.mmap, start: int, end: int, address: int, load: Load) -> None:
        self.data, self.start, self.end, self.address, self.load = data, start, end, address, load
        self.at = self.called = start
        self.vectors: dict[int, bytes] = {}
        self.general: dict[int, bytes] = {}
        self.memory: dict[int, int] = {}

    def follow(self, anchor: int) -> Iterator[bytes]:
        """Runs over the code around an anchor, to the first call behind it."""
        self.at = max(self.at, anchor - LOOK_BACK)
        stop = min(anchor + LONGEST, self.end - 16)  # 16: the longest instruction
        while token := TOKEN.search(self.data, self.at, stop):
            self.at = token.end()
            if token.lastgroup != "call":
                self.move(token)
            elif self.is_call(token.group()):
                built = self.built()
                if built:
                    yield built
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
        register, place, offset, self.at = _operand(self.data, at)
        vex = form == "vector" and head[0] == 0xC5
        before = head[-3:-2] if form == "vector" else head[-2:-1]
        rex = before[0] if before and before[0] & 0xF0 == 0x40 and not vex else 0
        register |= 8 if (head[1] < 0x80 if vex else rex & 4) else 0
        place = -1 if rex & 1 and place == RAX else place  # r8
        if form == "vector":
            if place == RIP and head[-1] in LOADS:
                size = 32 if vex and head[1] & 4 else 16
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

    def built(self) -> bytes:
        """The string at rax, if all of it is known."""
        text = bytearray()
        while len(text) in self.memory and self.memory[len(text)]:
            text.append(self.memory[len(text)])
        size = len(text)
        around = self.data[max(self.start, self.called - BEFORE_CALL) : self.at]
        told = self.memory.get(size) == 0 or any(struct.pack("<I", n) in around for n in (size, size + 1))
        return bytes(text) if told else b""


def _operand(data: mmap.mmap, at: int) -> tuple[int, int, int, int]:
    """A ModRM operand: register, what it is relative to (RAX, RIP, or -1 for all else), offset, and where it ends."""
    mode, register, base = data[at] >> 6, data[at] >> 3 & 7, data[at] & 7
    at += 1
    if mode == 3:
        return register, -1, 0, at
    place = RIP if (mode, base) == (0, 5) else RAX if base == 0 else -1
    if base == 4:  # an index byte
        base = data[at] & 7
        at += 1
    wide = (4 if base == 5 else 0, 1, 4)[mode]
    return register, place, int.from_bytes(data[at : at + wide], "little", signed=True), at + wide
