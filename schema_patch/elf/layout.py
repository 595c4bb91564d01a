"""The headers of an ELF file, proved to be whole: bytes -> Layout.

Knows the ELF64 format, that a copy that broke off ends before a header says, and that what is loaded must lie in a
segment. Does not know what lies in the parts.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from schema_patch.model import ToolError

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
PT_GNU_EH_FRAME, PT_GNU_RELRO = 0x6474E550, 0x6474E552
SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS, SHT_DYNSYM = 0, 2, 3, 8, 11
# Code for devices, in the host's file: its strings are no strings of the host.
DEVICE_CODE = ("OFFLOAD_DEVICE_CODE", "__CLANG_OFFLOAD_BUNDLE__", ".llvm.offloading", ".nv_fatbin", ".hip_fatbin")

Bytes = bytes | mmap.mmap
WINDOW = 1 << 22


class ForeignElf(ToolError):
    """A well-formed ELF file for a machine that torch does not run on."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of bytes in the file, the address where it is loaded, and what it is called; `kind` of a section."""

    name: str
    start: int
    end: int
    address: int
    kind: int = 0

    def holds(self, address: int) -> bool:
        return self.address <= address < self.address + self.end - self.start


@dataclass(frozen=True, slots=True)
class Layout:
    """`loaded`: the segments; `constants`: those that nobody writes; `code`: those that run.

    `sections` is empty where the file has no section headers; `dynamic` is None where nothing is linked dynamically.
    `fixed`: ranges of addresses that nobody writes once the loader is done. `frames`: the table of functions.
    """

    machine: str
    stripped: bool
    constants: tuple[Part, ...]
    loaded: tuple[Part, ...]
    code: tuple[Part, ...]
    sections: tuple[Part, ...] = ()
    dynamic: Part | None = None
    fixed: tuple[tuple[int, int], ...] = ()
    frames: Part | None = None

    def constant(self, data: Bytes, address: int, size: int) -> bytes:
        """The bytes at an address, or none where nothing is loaded from the file."""
        at = self.offset(address, size)
        return b"" if at is None else data[at : at + size]

    def offset(self, address: int, size: int) -> int | None:
        """Where in the file the bytes at an address are; None where they are not loaded from it."""
        for part in self.loaded:
            at = address - part.address + part.start
            if part.start <= at and at + size <= part.end:
                return at
        return None

    def address(self, offset: int) -> int | None:
        """Where a byte of the file is loaded; None where it is not."""
        found = (part for part in self.loaded if part.start <= offset < part.end)
        return next((offset - part.start + part.address for part in found), None)

    def named(self, name: str) -> Part | None:
        return next((part for part in self.sections if part.name == name), None)

    def device_code(self) -> tuple[Part, ...]:
        return tuple(part for part in self.sections if part.name.startswith(DEVICE_CODE) and part.end > part.start)


def broken(expected: str, found: str, where: str) -> ToolError:
    """The error for a file that is damaged or cut."""
    return ToolError(f"not a whole ELF file: expected {expected}, found {found}; build or install it again", where)


def prove_whole(data: Bytes, where: str) -> Layout:
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
    dynamic, frames = (
        next((Part(name, s[2], s[2] + s[5], s[3]) for s in segments if s[0] == kind), None)
        for name, kind in (("dynamic", PT_DYNAMIC), ("frames", PT_GNU_EH_FRAME))
    )
    fixed = [(s[3], s[3] + s[6]) for s in segments if s[0] == PT_GNU_RELRO or (s[0] == PT_LOAD and not s[1] & PF_W)]
    named: list[Part] = []
    if shoff or shnum:
        if shentsize != SECTION.size or not 0 < shstrndx < shnum:
            found = f"entries of {shentsize} bytes, names in {shstrndx} of {shnum}"
            raise broken("a section header table", found, where)
        sections = _sections(data, shoff, shnum, where)
        named = _named(data, sections, shstrndx, where)
        stripped = all(section[1] != SHT_SYMTAB for section in sections)
    else:  # sstrip took the section headers: what the loader maps is all there is
        stripped = True
    constants = [part for part, (_, s) in zip(loaded, loads, strict=True) if not s[1] & PF_W]
    parts = (tuple(constants), tuple(loaded), tuple(code), tuple(named))
    return Layout(MACHINES[machine], stripped, *parts, dynamic, tuple(fixed), frames)


def _foreign_or_broken(data: Bytes, where: str) -> ToolError:
    """A header of another class or byte order is foreign if it agrees with itself, else it is damaged."""
    size, at = {1: (52, 40), 2: (64, 52)}.get(data[4], (0, 0))  # its own size, and where it says so
    order = {1: "<", 2: ">"}.get(data[5])
    other = (data[4], data[5]) != (IDENT[4], IDENT[5])
    if other and order and size and struct.unpack_from(order + "H", data, at) == (size,):
        found = f"{'32' if size == 52 else '64'}-bit {'little' if order == '<' else 'big'}-endian"
        return ForeignElf(f"expected 64-bit little-endian ELF, found {found}", where)
    return broken("64-bit little-endian ELF", f"identification {data[:7]!r}", where)


def _segments(data: Bytes, offset: int, count: int, where: str) -> list[tuple[int, ...]]:
    segments = list(_entries(data, SEGMENT, offset, count, "program header table", where))
    for index, (kind, _, start, _, _, filesz, memsz, _) in enumerate(segments):
        _inside(data, start, filesz, f"segment {index}", where)
        if kind == PT_LOAD and filesz > memsz:
            raise broken(f"segment {index} to fit in memory", f"{filesz} bytes for {memsz}", where)
    return segments


def _sections(data: Bytes, offset: int, count: int, where: str) -> list[tuple[int, ...]]:
    sections = list(_entries(data, SECTION, offset, count, "section header table", where))
    for index, (_, kind, _, _, start, size, *_) in enumerate(sections):
        if kind not in (SHT_NULL, SHT_NOBITS):
            _inside(data, start, size, f"section {index}", where)
    return sections


def _named(data: Bytes, sections: list[tuple[int, ...]], names: int, where: str) -> list[Part]:
    if sections[names][1] != SHT_STRTAB:
        raise broken("a table of section names", f"a section of type {sections[names][1]}", where)
    table, end = sections[names][4], sum(sections[names][4:6])
    return [
        Part(
            text(data, table + name, end),
            start,
            start if kind in (SHT_NULL, SHT_NOBITS) else start + size,
            address,
            kind,
        )
        for name, kind, _, address, start, size, *_ in sections
    ]


def _entries(
    data: Bytes, form: struct.Struct, offset: int, count: int, what: str, where: str
) -> Iterator[tuple[int, ...]]:
    if not offset or not count:
        raise broken(f"a {what}", f"{count} entries at byte {offset}", where)
    _inside(data, offset, count * form.size, what, where)
    return form.iter_unpack(data[offset : offset + count * form.size])


def _inside(data: Bytes, offset: int, size: int, what: str, where: str) -> None:
    if offset + size > len(data):
        raise broken(f"{what} to end at byte {offset + size}", f"the end of the file at byte {len(data)}", where)


def release(data: Bytes, start: int, end: int) -> None:
    """Gives the memory of pages read so far back; the file stays mapped. Those before may have come along."""
    first, last = max(start - WINDOW, 0) & -mmap.PAGESIZE, min(end, len(data))
    if isinstance(data, mmap.mmap) and first < last and hasattr(data, "madvise"):  # not everywhere
        data.madvise(mmap.MADV_DONTNEED, first, last - first)


def text(data: Bytes, start: int, end: int) -> str:
    """What stands from one place on up to a zero; nothing where there is none before `end`."""
    return data[start : max(data.find(b"\0", start, end), start)].decode("ascii", "backslashreplace")


def find(data: Bytes, word: bytes, start: int, end: int) -> int:
    """Where some bytes stand first in a range of which no more than a part is in memory; -1 where they do not."""
    found = (data.find(word, first, min(last + len(word), end)) for first, last in _windows(data, start, end))
    return next((at for at in found if at >= 0), -1)


def holds(data: Bytes, word: bytes) -> bool:
    """Whether some bytes stand anywhere in a file. From behind a search takes a third of the time."""
    return any(data.rfind(word, first, last + len(word)) >= 0 for first, last in _windows(data, 0, len(data)))


def _windows(data: Bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    for first in range(start, end, WINDOW):
        yield first, min(first + WINDOW, end)
        release(data, first, first + WINDOW)
