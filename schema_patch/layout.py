"""The headers of an ELF file, proved to be whole: bytes -> Layout.

Knows the ELF64 format, and that a copy that broke off ends before a header says. Does not know what lies in the parts.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .model import ToolError

MAGIC = b"\x7fELF"
IDENT = MAGIC + b"\x02\x01\x01"  # 64-bit, little-endian, version 1: what torch is built for
X86_64 = "x86-64"
MACHINES = {62: X86_64, 183: "AArch64"}
FOREIGN = {21: "PowerPC", 22: "S/390", 243: "RISC-V", 247: "BPF", 258: "LoongArch"}
SHARED, KINDS = 3, (2, 3)  # shared object; executable or shared object

# The structures of the ELF64 specification, field by field.
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
PT_LOAD, PT_DYNAMIC, PF_X, PF_W = 1, 2, 1, 2
SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS = 0, 2, 3, 8
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4


class ForeignElf(ToolError):
    """A well-formed ELF file for a machine that torch does not run on."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of bytes in the file, the address where it is loaded, and what it is called."""

    name: str
    start: int
    end: int
    address: int


@dataclass(frozen=True, slots=True)
class Layout:
    """`literals`: where a compiler puts string literals; `loaded` and `code`: the segments, and those that run."""

    machine: str
    stripped: bool
    literals: tuple[Part, ...]
    loaded: tuple[Part, ...]
    code: tuple[Part, ...]

    def constant(self, data: mmap.mmap, address: int, size: int) -> bytes:
        """The bytes at an address, or none where nothing is loaded from the file."""
        for part in self.loaded:
            at = address - part.address + part.start
            if part.start <= at and at + size <= part.end:
                return data[at : at + size]
        return b""


def broken(expected: str, found: str, where: str) -> ToolError:
    """The error for a file that is damaged or cut."""
    return ToolError(f"not a whole ELF file: expected {expected}, found {found}; build or install it again", where)


def prove_whole(data: mmap.mmap, where: str) -> Layout:
    """Holds every range that the headers name against the file's size. Raises ToolError for the first beyond it."""
    if len(data) < HEADER.size:
        raise broken(f"the {HEADER.size} bytes of its header", f"{len(data)} bytes", where)
    ident, kind, machine, version, _, phoff, shoff, _, ehsize, phentsize, phnum, shentsize, shnum, shstrndx = (
        HEADER.unpack_from(data)
    )
    if not ident.startswith(IDENT):
        raise _foreign_or_broken(data, where)
    if machine in FOREIGN:
        raise ForeignElf(f"expected machine {' or '.join(MACHINES.values())}, found {FOREIGN[machine]}", where)
    if machine not in MACHINES or kind not in KINDS:
        raise broken("a shared object of a known machine", f"ELF type {kind}, machine {machine}", where)
    if (version, ehsize, phentsize) != (1, HEADER.size, SEGMENT.size):
        raise broken("the header sizes of ELF64", f"version {version}, sizes {ehsize} and {phentsize}", where)
    segments = _segments(data, phoff, phnum, where)
    if kind == SHARED and [segment[0] for segment in segments].count(PT_DYNAMIC) != 1:
        raise broken("one dynamic segment", f"segments of types {[segment[0] for segment in segments]}", where)

    loads = [(f"segment {i}", segment) for i, segment in enumerate(segments) if segment[0] == PT_LOAD]
    loaded = [Part(name, s[2], s[2] + s[5], s[3]) for name, s in loads]
    code = [part for part, (_, s) in zip(loaded, loads, strict=True) if s[1] & PF_X]
    if shoff or shnum:
        if shentsize != SECTION.size or not 0 < shstrndx < shnum:
            found = f"entries of {shentsize} bytes, names in {shstrndx} of {shnum}"
            raise broken("a section header table", found, where)
        sections = _sections(data, shoff, shnum, where)
        literals = list(_literals(data, sections, shstrndx, where))
        stripped = all(section[1] != SHT_SYMTAB for section in sections)
    else:  # sstrip took the section headers: what the loader maps is all there is
        literals = [part for part, (_, s) in zip(loaded, loads, strict=True) if not s[1] & PF_W]
        stripped = True
    return Layout(MACHINES[machine], stripped, tuple(literals), tuple(loaded), tuple(code))


def _foreign_or_broken(data: mmap.mmap, where: str) -> ToolError:
    """A header of another class or byte order is foreign if it agrees with itself, else it is damaged."""
    size, at = {1: (52, 40), 2: (64, 52)}.get(data[4], (0, 0))  # its own size, and where it says so
    order = {1: "<", 2: ">"}.get(data[5])
    other = (data[4], data[5]) != (IDENT[4], IDENT[5])
    if other and order and size and struct.unpack_from(order + "H", data, at) == (size,):
        found = f"{'32' if size == 52 else '64'}-bit {'little' if order == '<' else 'big'}-endian"
        return ForeignElf(f"expected 64-bit little-endian ELF, found {found}", where)
    return broken("64-bit little-endian ELF", f"identification {data[:7]!r}", where)


def _segments(data: mmap.mmap, offset: int, count: int, where: str) -> list[tuple[int, ...]]:
    segments = list(_entries(data, SEGMENT, offset, count, "program header table", where))
    for index, (kind, _, start, _, _, filesz, memsz, _) in enumerate(segments):
        _inside(data, start, filesz, f"segment {index}", where)
        if kind == PT_LOAD and filesz > memsz:
            raise broken(f"segment {index} to fit in memory", f"{filesz} bytes for {memsz}", where)
    return segments


def _sections(data: mmap.mmap, offset: int, count: int, where: str) -> list[tuple[int, ...]]:
    sections = list(_entries(data, SECTION, offset, count, "section header table", where))
    for index, (_, kind, _, _, start, size, *_) in enumerate(sections):
        if kind not in (SHT_NULL, SHT_NOBITS):
            _inside(data, start, size, f"section {index}", where)
    return sections


def _literals(data: mmap.mmap, sections: list[tuple[int, ...]], names: int, where: str) -> Iterator[Part]:
    """The sections that are mapped, and neither writable nor code."""
    if sections[names][1] != SHT_STRTAB:
        raise broken("a table of section names", f"a section of type {sections[names][1]}", where)
    table = data[sections[names][4] : sections[names][4] + sections[names][5]]
    for name, kind, flags, address, start, size, *_ in sections:
        if kind != SHT_NOBITS and flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR) == SHF_ALLOC:
            label = table[name:].split(b"\0", 1)[0].decode("ascii", "backslashreplace")
            yield Part(label, start, start + size, address)


def _entries(
    data: mmap.mmap, form: struct.Struct, offset: int, count: int, what: str, where: str
) -> Iterator[tuple[int, ...]]:
    if not offset or not count:
        raise broken(f"a {what}", f"{count} entries at byte {offset}", where)
    _inside(data, offset, count * form.size, what, where)
    return form.iter_unpack(data[offset : offset + count * form.size])


def _inside(data: mmap.mmap, offset: int, size: int, what: str, where: str) -> None:
    if offset + size > len(data):
        raise broken(f"{what} to end at byte {offset + size}", f"the end of the file at byte {len(data)}", where)
