"""The dynamic section of an ELF file: what a library needs, of which version, where it looks for it, what it exports.

Knows the tables that the loader reads, and holds each against the file's size. Does not know what a name means.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from .layout import SHT_DYNSYM, Bytes, Layout, broken, release, text

ENTRY = struct.Struct("<qQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
VERNEED = struct.Struct("<HHIII")
VERNAUX = struct.Struct("<IHHII")
GNU_HASH = struct.Struct("<IIII")

NULL, NEEDED, PLTRELSZ, HASH, STRTAB, SYMTAB, RELA, RELASZ, STRSZ = 0, 1, 2, 4, 5, 6, 7, 8, 10
SONAME, RPATH, JMPREL, RUNPATH = 14, 15, 23, 29
GNU_HASH_TAG, VERNEED_TAG, VERNEEDNUM = 0x6FFFFEF5, 0x6FFFFFFE, 0x6FFFFFFF
RELATIVE, GLOB_DAT, JUMP_SLOT = 8, 6, 7  # of x86-64; a slot holds the address of a function
FLAGS_1, PIE = 0x6FFFFFFB, 0x08000000
LOCAL, UNDEFINED = 0, 0
ROWS = 1 << 14  # of a table, read at once
LONGEST = 1 << 16  # no name of a library or version is longer


class Symbol(NamedTuple):
    """A dynamic symbol that others can see."""

    name: str
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class Dynamic:
    """What the loader reads. `versions`: of each library needed, the symbol versions that it must have.

    `numbered`: each version by the number that stands beside a symbol.
    """

    needed: tuple[str, ...] = ()
    soname: str = ""
    runpath: str = ""
    versions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    numbered: dict[int, str] = field(default_factory=dict)
    tags: dict[int, int] = field(default_factory=dict)
    names: tuple[int, int] = (0, 0)  # where the table of names is in the file

    @property
    def program(self) -> bool:
        """Whether it is a program, which the loader refuses as a library (glibc since 2.30)."""
        return bool(self.tags.get(FLAGS_1, 0) & PIE)


def read(data: Bytes, layout: Layout, where: str) -> Dynamic:
    """Raises ToolError where a table or a name lies outside of the file."""
    if layout.dynamic is None:
        return Dynamic()
    part = layout.dynamic
    if (part.end - part.start) % ENTRY.size:
        raise broken(f"a dynamic section of entries of {ENTRY.size} bytes", f"{part.end - part.start} bytes", where)
    entries: list[tuple[int, int]] = []
    for tag, value in ENTRY.iter_unpack(data[part.start : part.end]):
        if tag == NULL:
            break
        entries.append((tag, value))
    tags = dict(reversed(entries))  # of a tag that is there twice, the first
    if STRTAB not in tags:
        if NEEDED in tags or SONAME in tags:
            raise broken("a table of names in the dynamic section", "none", where)
        return Dynamic(tags=tags)
    start, end = names = _table(layout, tags, STRTAB, STRSZ, where)
    name = partial(_name, data, start, end, where)
    needed = tuple(name(value) for tag, value in entries if tag == NEEDED)
    runpath = tags.get(RUNPATH, tags.get(RPATH))
    versions = list(_versions(data, layout, tags, start, end, where))
    return Dynamic(
        needed,
        name(tags[SONAME]) if SONAME in tags else "",
        "" if runpath is None else name(runpath),
        tuple((file, tuple(version for _, version in rows)) for file, rows in versions),
        dict(row for _, rows in versions for row in rows),
        tags,
        names,
    )


def exported(data: Bytes, layout: Layout, dynamic: Dynamic, where: str) -> tuple[bytes, list[tuple[int, int, int]]]:
    """The table of names, and of the dynamic symbols that others can see, in the order of their table, where the name
    begins in that, the address and the size."""
    names = data[slice(*dynamic.names)]  # in memory they are read much faster
    release(data, *dynamic.names)
    if SYMTAB not in dynamic.tags:
        return names, []
    start = layout.offset(dynamic.tags[SYMTAB], SYMBOL.size)
    count = _count(data, layout, dynamic, where)
    if start is None or count is None or start + count * SYMBOL.size > len(data):
        raise broken("a table of dynamic symbols inside the file", f"{count} entries at byte {start}", where)
    rows = [
        (at, value, size)
        for at, info, _, section, value, size in _rows(data, SYMBOL, start, start + count * SYMBOL.size)
        if value and section != UNDEFINED and info >> 4 != LOCAL
    ]
    return names, rows


def symbols(data: Bytes, layout: Layout, dynamic: Dynamic, where: str) -> Iterator[Symbol]:
    """The dynamic symbols that others can see, in the order of the table."""
    names, rows = exported(data, layout, dynamic, where)
    for at, value, size in rows:
        yield Symbol(text(names, at, len(names)), value, size)


def relocations(data: Bytes, layout: Layout, dynamic: Dynamic, where: str) -> Iterator[tuple[int, ...]]:
    for table, size in ((RELA, RELASZ), (JMPREL, PLTRELSZ)):
        if table in dynamic.tags:
            start, end = _table(layout, dynamic.tags, table, size, where)
            yield from _rows(data, RELOCATION, start, end - (end - start) % RELOCATION.size)


def _rows(data: Bytes, form: struct.Struct, start: int, end: int) -> Iterator[tuple[int, ...]]:
    """The rows of a table, of which no more than a part is in memory."""
    step = ROWS * form.size
    for first in range(start, end, step):
        yield from form.iter_unpack(data[first : min(first + step, end)])
        release(data, first, min(first + step, end))


def _table(layout: Layout, tags: dict[int, int], table: int, size: int, where: str) -> tuple[int, int]:
    length = tags.get(size, 0)
    start = layout.offset(tags[table], length)
    if start is None:
        found = f"{length} bytes at address {tags[table]:#x}, which the file does not hold"
        raise broken(f"the table of dynamic tag {table:#x} inside the file", found, where)
    return start, start + length


def _name(data: Bytes, start: int, end: int, where: str, offset: int) -> str:
    stop = data.find(b"\0", start + offset, min(end, start + offset + LONGEST)) if offset < end - start else -1
    raw = data[start + offset : stop] if stop >= 0 else b""
    if not raw or not raw.decode("ascii", "replace").isprintable():
        raise broken("the name of a library or a path in the dynamic section", repr(raw[:80]), where)
    return raw.decode("ascii", "backslashreplace")


def _versions(
    data: Bytes, layout: Layout, tags: dict[int, int], start: int, end: int, where: str
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Two linked lists; a damaged one that leads in circles ends with the counts that it states."""
    address = tags.get(VERNEED_TAG)
    for _ in range(min(tags.get(VERNEEDNUM, 0), 1000) if address else 0):
        _, count, file, aux, following = VERNEED.unpack(_at(data, layout, address or 0, VERNEED.size, where))
        versions = []
        place = (address or 0) + aux
        for _ in range(min(count, 1000)):
            _, _, number, name, beyond = VERNAUX.unpack(_at(data, layout, place, VERNAUX.size, where))
            versions.append((number & 0x7FFF, _name(data, start, end, where, name)))
            place += beyond
        yield _name(data, start, end, where, file), versions
        address = (address or 0) + following


def _at(data: Bytes, layout: Layout, address: int, size: int, where: str) -> bytes:
    found = layout.constant(data, address, size)
    if len(found) != size:
        raise broken("the versions of symbols inside the file", f"address {address:#x}", where)
    return found


def _count(data: Bytes, layout: Layout, dynamic: Dynamic, where: str) -> int | None:
    """How many dynamic symbols there are: no tag says so, but the section, a hash table or a relocation does."""
    for part in layout.sections:
        if part.kind == SHT_DYNSYM:
            return (part.end - part.start) // SYMBOL.size
    if HASH in dynamic.tags:
        head = layout.constant(data, dynamic.tags[HASH], 8)
        return int(struct.unpack("<II", head)[1]) if head else None
    named = (info >> 32 for _, info, _ in relocations(data, layout, dynamic, where))
    return max(_hashed(data, layout, dynamic), 1 + max(named, default=-1)) or None


def _hashed(data: Bytes, layout: Layout, dynamic: Dynamic) -> int:
    """How many symbols GNU's hash table reaches: those that are exported, which come last."""
    head = layout.constant(data, dynamic.tags.get(GNU_HASH_TAG, 0), GNU_HASH.size)
    if GNU_HASH_TAG not in dynamic.tags or not head:
        return 0
    buckets, first, words, _ = GNU_HASH.unpack(head)
    place = dynamic.tags[GNU_HASH_TAG] + GNU_HASH.size + 8 * words
    table = layout.constant(data, place, 4 * buckets)
    last = max(struct.unpack(f"<{len(table) // 4}I", table), default=0)
    if last < first:
        return int(first)
    while link := layout.constant(data, place + 4 * buckets + 4 * (last - first), 4):
        last += 1
        if link[0] & 1:  # ends the chain of the last bucket
            return int(last)
    return 0
