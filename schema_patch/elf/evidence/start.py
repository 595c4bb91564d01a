"""What the loader runs of a library before anybody has it: all that calls and jumps lead to that say where, however
deep; and where in it the kernel and the loader are asked for something.

Decoded, not followed: a branch that is never taken counts, and other pointers than those that the loader fills are not
seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from iced_x86 import Decoder, FlowControl, Instruction, Mnemonic, OpKind

from schema_patch.elf.frames import Functions

from .effects import EFFECTS
from .image import BESIDE, Image
from .instructions import KERNELS
from .machine import HEAP, IMAGE, KERNEL
from .program import Program

MOST = 2_000_000  # instructions: some seconds. Published libraries have at most a fifth of that
UNBOUNDED = 1 << 10  # bytes of a function that no table names
STUB = 13  # bytes in which a stub has its jump
NEXT, NEAR, MOV = FlowControl.NEXT, OpKind.NEAR_BRANCH64, Mnemonic.MOV
NAMES = 6  # bytes at least of an instruction that names a place
READS = (Mnemonic.CALL, Mnemonic.JMP, MOV)
KERNELS_OLD = 0x80  # of `int`


@dataclass
class Start:
    """`asked`: the ends of calls by which the library may become another than its file, or which let others run beside
    it, each with the function around it and what is called. `whole`: all was looked at."""

    image: Image
    program: Program
    functions: Functions
    asked: dict[int, tuple[int, str]] = field(default_factory=dict)
    whole: bool = True
    _seen: set[int] = field(default_factory=set)
    _behind: dict[int, tuple[str | None, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pending = sorted(self.image.started())
        while pending:
            at = pending.pop()
            if at in self._seen:
                continue
            around = self.functions.around(at)
            first, end = around or (at, min(self.functions.after(at), at + UNBOUNDED))
            for start in dict.fromkeys((first, at)):  # in the midst of a function instructions may begin otherwise
                pending += self._swept(start, end, first)
            if len(self._seen) > MOST:
                self.whole = False
                return

    def _swept(self, start: int, end: int, entry: int) -> Iterator[int]:
        """Where instructions lead, up to one that was looked at: addresses of code. Notes whom they ask."""
        seen = self._seen
        code = self.image.layout.constant(self.image.data, start, end - start) if start not in seen else b""
        last, note, at = start + len(code), seen.add, start
        for now in Decoder(64, code, ip=start):
            if at in seen:
                return
            note(at)
            size, flow = now.len, now.flow_control
            at += size
            if flow == NEXT and (size < NAMES or now.mnemonic != MOV or not now.is_ip_rel_memory_operand):
                continue
            if flow != NEXT and now.op0_kind == NEAR:
                leads = now.near_branch_target
                if start <= leads < last:
                    if leads not in seen:
                        yield leads
                    continue
                to = IMAGE + leads
            else:
                to = _read(self.image, now)
            if to and to not in self._behind:
                self._behind[to] = self._led(to)
            name, address = self._behind[to] if to else (None, 0)
            if name in EFFECTS or name in BESIDE:
                self.asked[at] = entry, name
            elif address:
                yield address
            if now.mnemonic in KERNELS or (flow == FlowControl.INTERRUPT and now.immediate8 == KERNELS_OLD):
                self.asked[at] = entry, KERNEL

    def _led(self, to: int) -> tuple[str | None, int]:
        """The import that an address leads to, also by way of a stub, or the code of the library; neither for data."""
        stub = b"\xff\x25" in self.image.layout.constant(self.image.data, to - IMAGE, STUB)
        found = self.program.behind(to) if stub else to
        parts = self.image.layout.code if IMAGE <= found < HEAP else ()
        at = found - IMAGE
        inside = any(part.holds(at) for part in parts)
        return self.program.name(found), at if inside else 0


def _read(image: Image, now: Instruction) -> int:
    """The address that a call or a jump finds in a variable, or that is moved from one, as the loader left it there."""
    if not now.is_ip_rel_memory_operand or now.mnemonic not in READS:
        return 0
    place = IMAGE + int(now.ip_rel_memory_address)
    found = image.first(place)
    if found and now.mnemonic == MOV and image.constant(place) is not None:
        return 0  # what is taken of a table that nobody writes is handed on, perhaps to torch
    return found
