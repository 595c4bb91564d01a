"""One device image: bytes -> for which target it is, and its kernels.

Knows the forms that Intel's compilers write, as found in published wheels: an `ar` archive of several, an ELF file of
machine code with notes that name the device, an ELF file around SPIR-V, and SPIR-V itself. Does not know where in a
library images lie, nor what people call a target.

The driver takes native code only for exactly the device of its note: a member called `64.bmg`, built for 20.1.0, does
not run on a 20.2.0. So the note counts and not the name.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .layout import HEADER, SECTION, SHT_NOBITS, WINDOW, Bytes, broken, release, text

ARCHIVE = b"!<arch>\n"
SPIRV_MAGIC = b"\x03\x02\x23\x07"
ELF = b"\x7fELF\x02\x01\x01"
BITCODE = b"BC\xc0\xde"
SPIRV = "SPIR-V"
INTEL_GPU, NO_MACHINE = 205, 0
OTHERS = {62: "x86-64", 183: "AArch64", 190: "nvptx", 224: "amdgcn"}
SHT_PROGBITS, SHT_NOTE, SHT_SPIRV = 1, 7, 0xFF000009
NOTE = struct.Struct("<III")
NOTES, NOTE_OWNER, PRODUCT = ".note.intelgt.compat", b"IntelGT\0", 6
MEMBER = 60  # bytes before each member of an archive
ENTRY_POINT = 15
BEFORE_ENTRY_POINTS = frozenset({10, 11, 14, 17})  # extensions, imports, memory model, capabilities
SLICE = 1 << 20


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Code for one target: a device ("20.1.0"), SPIR-V, or another family by its name.

    `called`: the archive's name for it. `hashes`: of each kernel's code, in the order of `kernels`, if asked for;
    SPIR-V has no code of a kernel alone, so that its hash is the module's.
    """

    target: str
    called: str
    kernels: tuple[str, ...]
    hashes: tuple[str, ...] = ()
    compressed: bool = False


class UnknownFormError(Exception):
    """A well-known or unknown form that this module does not read."""


def read(
    data: Bytes, start: int, end: int, where: str, *, hashes: bool = False, called: str = ""
) -> Iterator[MachineCode]:
    """The code in data[start:end]. Raises ToolError where it is damaged, UnknownFormError where it cannot be read."""
    magic = data[start : start + 8]
    if magic == ARCHIVE:
        done = start
        for name, first, last in leaves(data, start, end, where):
            yield from read(data, first, last, where, hashes=hashes, called=name)
            if last - done > WINDOW:
                release(data, done, last)
                done = last
    elif magic.startswith(ELF):
        yield from _elf(data, start, end, where, hashes, called)
    elif magic.startswith(SPIRV_MAGIC):
        kernels = tuple(_entry_points(data, start, end, where))
        module = (_hash(data, start, end),) * len(kernels) if hashes else ()
        yield MachineCode(SPIRV, called, kernels, module)
    else:
        what = "LLVM bitcode" if magic.startswith(BITCODE) else f"an image that begins with {magic!r}"
        raise UnknownFormError(f"{what}{f' (member {called})' if called else ''}")


def leaves(data: Bytes, start: int, end: int, where: str, called: str = "") -> Iterator[tuple[str, int, int]]:
    """Name and place of each image in data[start:end] that is no archive."""
    if data[start : start + 8] != ARCHIVE:
        yield called, start, end
        return
    for name, first, last in members(data, start, end, where):
        yield from leaves(data, first, last, where, name)


def members(data: Bytes, start: int, end: int, where: str) -> Iterator[tuple[str, int, int]]:
    """Name and place of each member of an archive; padding between them is left out."""
    at = start + len(ARCHIVE)
    while at < end:
        head = data[at : at + MEMBER]
        if len(head) < MEMBER or head[58:] != b"`\n" or not head[48:58].strip().isdigit():
            raise broken(f"a member of a device archive at byte {at}", repr(head[:16]), where)
        name = head[:16].decode("ascii", "backslashreplace").strip().rstrip("/")
        first, size = at + MEMBER, int(head[48:58])
        if first + size > end:
            raise broken(f"member {name} to end at byte {end}", f"{size} bytes from byte {first}", where)
        if not name.startswith("pad_"):
            yield name, first, first + size
        at = first + size + size % 2


def spirv_end(data: Bytes, start: int, end: int) -> int:
    """Where a SPIR-V module ends: its instructions say how long they are. `start` itself if it is none."""
    version, _, bound = struct.unpack_from("<III", data, start + 4) if start + 20 <= end else (0, 0, 0)
    if version >> 16 != 1 or version & 0xFF or not bound:
        return start
    at = start + 20
    while at + 4 <= end and (words := struct.unpack_from("<H", data, at + 2)[0]) and at + 4 * words <= end:
        at += 4 * words
    return at


def elf_end(data: Bytes, start: int, end: int) -> int:
    """Where a device's ELF file ends; `start` itself if it is none."""
    if start + HEADER.size > end:
        return start
    _, _, machine, _, _, _, shoff, *_, shentsize, shnum, _ = HEADER.unpack_from(data, start)
    if machine not in (INTEL_GPU, NO_MACHINE) or shentsize != SECTION.size:
        return start
    table = start + shoff + shnum * SECTION.size
    if not shnum or table > end:
        return start
    rows = SECTION.iter_unpack(data[start + shoff : table])
    last = int(max([table, *(start + row[4] + row[5] for row in rows if row[1] != SHT_NOBITS)]))
    return last if last <= end else start


def _elf(data: Bytes, start: int, end: int, where: str, hashes: bool, called: str) -> Iterator[MachineCode]:
    if end - start < HEADER.size:
        raise broken("the header of a device's ELF file", f"{end - start} bytes", where)
    _, _, machine, _, _, _, shoff, *_, shentsize, shnum, shstrndx = HEADER.unpack_from(data, start)
    if machine not in (INTEL_GPU, NO_MACHINE):
        raise UnknownFormError(f"code for {OTHERS.get(machine, f'ELF machine {machine}')}")
    table = start + shoff + shnum * SECTION.size
    if shentsize != SECTION.size or shstrndx >= shnum or table > end:
        raise broken("the sections of a device's ELF file", f"{shnum} of {shentsize} bytes at byte {shoff}", where)
    sections = list(SECTION.iter_unpack(data[start + shoff : table]))
    last = start + max((row[4] + row[5] for row in sections if row[1] != SHT_NOBITS), default=0)
    if last > end:
        raise broken(f"a device's section to end at byte {end}", f"byte {last}", where)
    names = data[start + sections[shstrndx][4] : start + sections[shstrndx][4] + sections[shstrndx][5]]
    target = ""
    kernels: dict[str, str] = {}
    for name, kind, _, _, offset, size, _, _, _, _ in sections:
        first = start + offset
        if kind == SHT_SPIRV:
            yield from read(data, first, first + size, where, hashes=hashes, called=called)
        elif kind == SHT_PROGBITS and names.startswith(b".text.", name):
            kernel = text(names, name + 6, len(names))
            kernels[sys.intern(kernel)] = _hash(data, first, first + size) if hashes else ""
        elif kind == SHT_NOTE and names.startswith(NOTES.encode() + b"\0", name):
            target = _product(data[first : first + size], where)
    if machine == INTEL_GPU:
        kernels.pop("Intel_Symbol_Table_Void_Program", None)  # the compiler's own, in images that export functions
        yield MachineCode(
            target or re.sub(r"^(32|64)\.", "", called) or "unknown",
            called,
            tuple(kernels),
            tuple(kernels.values()) if hashes else (),
        )


def _product(notes: bytes, where: str) -> str:
    """The device in the notes: architecture, release and revision in one number."""
    at = 0
    while at + NOTE.size <= len(notes):
        owner, size, kind = NOTE.unpack_from(notes, at)
        first = at + NOTE.size + (owner + 3 & ~3)
        at = first + (size + 3 & ~3)
        if at > len(notes):
            raise broken("notes of a device's code inside their section", f"{at} bytes in {len(notes)}", where)
        if kind == PRODUCT and size == 4 and notes[first - (owner + 3 & ~3) :].startswith(NOTE_OWNER):
            (number,) = struct.unpack_from("<I", notes, first)
            return f"{number >> 22}.{number >> 14 & 0xFF}.{number & 0x3F}"
    return ""


def _entry_points(data: Bytes, start: int, end: int, where: str) -> Iterator[str]:
    """The kernels of a SPIR-V module, which it names before anything else."""
    at = start + 20
    while at + 4 <= end:
        code, words = struct.unpack_from("<HH", data, at)
        if not words or at + 4 * words > end:
            raise broken(f"an instruction of SPIR-V that ends at byte {end}", f"{words} words at byte {at}", where)
        if code == ENTRY_POINT:
            yield sys.intern(data[at + 12 : at + 4 * words].split(b"\0", 1)[0].decode("ascii", "backslashreplace"))
        elif code not in BEFORE_ENTRY_POINTS:
            return
        at += 4 * words


def _hash(data: Bytes, start: int, end: int) -> str:
    import hashlib

    digest = hashlib.sha256()
    for at in range(start, end, SLICE):
        digest.update(data[at : min(at + SLICE, end)])
        release(data, at, end)
    return digest.hexdigest()[:16]
