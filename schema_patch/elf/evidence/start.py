"""What the loader runs of a library before anybody has it: the functions to which calls and jumps lead that say where,
and where in them the kernel and the loader are asked for something.

Found by bytes, not by following: a call too many does no harm here. What goes through pointers is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from schema_patch.elf.frames import Functions

from .effects import EFFECTS
from .image import BESIDE, Image
from .instructions import CALL, END
from .machine import IMAGE, KERNEL, KERNEL_AT
from .program import Program
from .users import in_code

LEADS = re.compile(rb"[\xe8\xe9]|\x0f[\x80-\x8f\x05\x34]|\xff[\x15\x25]|\xcd\x80")
SHORT = re.compile(rb"[\xeb\x70-\x7f][\x00-\xff]", re.DOTALL)
KERNELS = (b"\x0f\x05", b"\x0f\x34", b"\xcd\x80")  # syscall, sysenter, int 0x80
DEEPEST = 3  # calls within calls
UNBOUNDED = 1 << 10  # bytes of a function that no table names
STUB = 13  # bytes in which a stub has its jump


def asked(image: Image, program: Program, functions: Functions) -> dict[int, tuple[int, str]]:
    """The ends of calls by which the library may become another than its file, or which let others run beside it; each
    with the function around it and what is called."""
    found: dict[int, tuple[int, str]] = {}
    behind: dict[int, int] = {}
    seen = image.started()
    pending = sorted(seen)
    for _ in range(DEEPEST):
        more: set[int] = set()
        for entry in pending:
            for site, to in _leads(image, functions, entry):
                if to not in behind:
                    behind[to] = _behind(image, program, to)
                name = program.name(behind[to])
                if (name in EFFECTS or name in BESIDE) and (name != KERNEL or _is_instruction(image, entry, site)):
                    found[site] = entry, name
                elif name is None and in_code(image, behind[to] - IMAGE):
                    more.add(functions.start(behind[to] - IMAGE))
        pending = sorted(more - seen)
        seen |= more
    return found


def _leads(image: Image, functions: Functions, entry: int) -> Iterator[tuple[int, int]]:
    """The ends of what may be calls and jumps in a function, and the addresses that they lead to."""
    _, end = functions.around(entry) or (entry, min(functions.after(entry), entry + UNBOUNDED))
    code = image.layout.constant(image.data, entry, end - entry)
    for match in LEADS.finditer(code):
        opcode, after = match.group(), match.end() + 4
        if opcode in KERNELS:
            yield entry + match.end(), KERNEL_AT
        elif after <= len(code):
            to = entry + after + int.from_bytes(code[after - 4 : after], "little", signed=True)
            if opcode[0] != 0xFF:
                yield entry + after, IMAGE + to
            elif isinstance(word := image.constant(IMAGE + to), int):
                yield entry + after, word
    for match in SHORT.finditer(code):
        after = match.end()
        to = after + int.from_bytes(code[after - 1 : after], "little", signed=True)
        if not 0 <= to < len(code):
            yield entry + after, IMAGE + entry + to


def _behind(image: Image, program: Program, to: int) -> int:
    """What a call leads to, also by way of a stub."""
    return program.behind(to) if b"\xff\x25" in image.layout.constant(image.data, to - IMAGE, STUB) else to


def _is_instruction(image: Image, entry: int, site: int) -> bool:
    """Whether an instruction that asks the kernel ends at `site`, for all that is known of the function."""
    at = entry
    while at < site:
        step = image.step(IMAGE + at)
        if step.next == step.address:
            return True
        at = step.next - IMAGE
    return at == site and step.kind in (CALL, END)
