"""What functions of a library are called, where a symbol table says, and of which TORCH_LIBRARY block they are.

Knows the names that the macro gives to its functions. A stripped library has none of them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection

from .dynamic import SYMBOL
from .layout import SECTION, SHT_SYMTAB, WINDOW, Bytes, Layout, Part, release, text

NAME = re.compile(
    r"(?P<size>\d+)(?P<rest>TORCH_LIBRARY(?P<impl>_IMPL)?(?P<fragment>_FRAGMENT)?_(?P<object>static_)?init_\w+)$"
)
LONGEST = 1 << 12  # bytes of one name


def of(data: Bytes, layout: Layout, addresses: Collection[int]) -> dict[int, str]:
    """The names of functions by address, as far as there are any."""
    found: dict[int, str] = {}
    for part in layout.sections if addresses else ():
        if part.kind != SHT_SYMTAB:
            continue
        table = layout.sections[_link(data, part, layout)]
        size = part.end - part.start - (part.end - part.start) % SYMBOL.size
        step = WINDOW - WINDOW % SYMBOL.size
        for first in range(part.start, part.start + size, step):
            for at, _, _, _, value, _ in SYMBOL.iter_unpack(data[first : min(first + step, part.start + size)]):
                if value in addresses and at:
                    start = table.start + at
                    name = text(data, start, min(start + LONGEST, table.end))
                    if value not in found or NAME.search(name):
                        found[value] = name
            release(data, first, first + step)
    return found


def title(name: str) -> str:
    """How people write the block that a function is of; the name itself of any other."""
    match = NAME.search(name)
    inside = space(name)
    return f"TORCH_LIBRARY{'_FRAGMENT' if match['fragment'] else ''}({inside})" if match and inside else name


def space(name: str) -> str:
    """The namespace in a mangled name, whose length stands before it, perhaps behind another number."""
    match = NAME.search(name)
    if not match or match["impl"]:
        return ""
    sizes = (int(match["size"][skip:] or 0) for skip in range(len(match["size"])))
    fits = (size for size in sizes if match["rest"][size:] in ("", "E", "RN5torch7LibraryE", "ERN5torch7LibraryE"))
    inside = match["rest"][: next(fits, 0)].partition("init_")[2]
    return inside.rpartition("_")[0] if match["fragment"] else inside


def _link(data: Bytes, part: Part, layout: Layout) -> int:
    """The section with a symbol table's names."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    index = layout.sections.index(part)
    link = int(SECTION.unpack_from(data, offset + index * SECTION.size)[6])
    return link if link < len(layout.sections) else 0
