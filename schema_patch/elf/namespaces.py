"""In which TORCH_LIBRARY block an operator is registered, as far as a symbol table tells.

Knows the names that the macro gives to its functions. A library with one block, or a string that one block's code
points at, has an answer; a stripped library has none.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from .layout import SECTION, SHT_SYMTAB, Bytes, Layout, Part, release

SYMBOL = struct.Struct("<IBBHQQ")
MACRO = b"TORCH_LIBRARY_"
NAME = re.compile(r"(?P<size>\d+)(?P<rest>TORCH_LIBRARY(?P<fragment>_FRAGMENT)?_(?P<object>static_)?init_\w+)$")
LARGEST = 1 << 20  # bytes of code of one block
WINDOW, LONGEST = 1 << 22, 1 << 12  # bytes of names looked at together, and of one name


@dataclass(frozen=True, slots=True)
class Blocks:
    """The namespaces of a library, and the place in the file of each function that registers operators in one."""

    spaces: frozenset[str] = frozenset()
    functions: tuple[tuple[str, Part], ...] = ()


def read(data: Bytes, layout: Layout) -> Blocks:
    """The blocks of a library, none where its symbols are gone."""
    spaces: set[str] = set()
    functions: list[tuple[str, Part]] = []
    for name, address, size in _symbols(data, layout):
        match = NAME.search(name)
        space = _space(match) if match else ""
        if not match or not space:
            continue
        spaces.add(space)
        start = None if match["object"] else layout.offset(address, size)
        if start is not None and size < LARGEST:
            functions.append((space, Part(name, start, start + size, address)))
    return Blocks(frozenset(spaces), tuple(functions))


def told(blocks: Blocks, data: Bytes, layout: Layout, places: Iterable[int], built: Iterable[int]) -> dict[int, str]:
    """The namespace of the strings at places in the file, and of those that code at places builds, where it is told."""
    if len(blocks.spaces) == 1:
        return dict.fromkeys((*places, *built), next(iter(blocks.spaces)))
    found = {at: space for at in built for space, part in blocks.functions if part.start <= at < part.end}
    addresses = {
        at - part.start + part.address: at for at in places for part in layout.loaded if part.start <= at < part.end
    }
    for space, part in blocks.functions if addresses else ():
        code = data[part.start : part.end]
        after = part.address + 4  # an operand counts from behind itself
        for at in range(len(code) - 3):
            target = after + at + int.from_bytes(code[at : at + 4], "little", signed=True)
            if target in addresses:
                found.setdefault(addresses[target], space)
    return found


def _space(match: re.Match[str]) -> str:
    """The namespace in a mangled name, whose length stands before it, perhaps behind another number."""
    sizes = (int(match["size"][skip:] or 0) for skip in range(len(match["size"])))
    fits = (size for size in sizes if match["rest"][size:] in ("", "E", "RN5torch7LibraryE", "ERN5torch7LibraryE"))
    space = match["rest"][: next(fits, 0)].partition("init_")[2]
    return space.rpartition("_")[0] if match["fragment"] else space


def _symbols(data: Bytes, layout: Layout) -> list[tuple[str, int, int]]:
    """The symbols that the macro made."""
    found: list[tuple[str, int, int]] = []
    for part in layout.sections:
        if part.kind != SHT_SYMTAB:
            continue
        table = layout.sections[_link(data, part, layout)]
        names: dict[int, str] = {}
        for first in range(table.start, table.end, WINDOW):
            base = max(table.start, first - LONGEST)
            window = data[base : min(first + WINDOW + LONGEST, table.end)]
            at = first - base
            while 0 <= (at := window.find(MACRO, at)) < first - base + WINDOW:
                begin, end = window.rfind(b"\0", 0, at) + 1, window.find(b"\0", at)
                names[base + begin - table.start] = window[begin:end].decode("ascii", "backslashreplace")
                at += len(MACRO)
            release(data, base, base + len(window))
        if names:
            size = part.end - part.start - (part.end - part.start) % SYMBOL.size
            step = WINDOW - WINDOW % SYMBOL.size
            for first in range(part.start, part.start + size, step):
                rows = SYMBOL.iter_unpack(data[first : min(first + step, part.start + size)])
                found += [(names[row[0]], row[4], row[5]) for row in rows if row[0] in names]
                release(data, first, first + step)
    return found


def _link(data: Bytes, part: Part, layout: Layout) -> int:
    """The section with a symbol table's names."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    index = layout.sections.index(part)
    link = int(SECTION.unpack_from(data, offset + index * SECTION.size)[6])
    return link if link < len(layout.sections) else 0
