"""Where functions begin and end, by the tables that exceptions are thrown with: they are there in stripped files too.

Knows .eh_frame_hdr, which the loader reads by its segment, and the records of .eh_frame that it leads to (Linux
Standard Base, DWARF). Does not know what functions are called.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

from . import exceptions
from .exceptions import OMITTED, WIDTHS, Reader
from .layout import Bytes, Layout

SORTED = (1, 0x1B, 0x03, 0x3B)  # version, and the encodings that every linker writes: pcrel, udata4, table relative
ROW = struct.Struct("<ii")


class Functions:
    """The functions of a library by address, found in the table without all of it being read."""

    def __init__(self, data: Bytes, layout: Layout) -> None:
        self.data, self.layout = data, layout
        self.count, self.table, self.address = 0, 0, 0
        self._commons: dict[int, _Common] = {}
        part = layout.frames
        if part and part.end - part.start >= 12 and tuple(data[part.start : part.start + 4]) == SORTED:
            (count,) = struct.unpack_from("<I", data, part.start + 8)
            if part.start + 12 + ROW.size * count <= part.end and part.address < 1 << 62:
                self.count, self.table, self.address = count, part.start + 12, part.address

    def around(self, address: int) -> tuple[int, int] | None:
        """Start and end of the function that an address is in; None where no record says."""
        start, record = self._row(address)
        size = self._size(record) if record else 0
        return (start, start + size) if size and 0 <= start <= address < start + size else None

    def after(self, address: int) -> int:
        """Where the next function begins."""
        index = bisect_right(self._starts, address)
        return self._starts[index] if index < self.count else 1 << 62

    @cached_property
    def _starts(self) -> array[int]:
        rows = struct.iter_unpack("<ii", self.data[self.table : self.table + ROW.size * self.count])
        return array("q", (self.address + first for first, _ in rows))

    def _row(self, address: int) -> tuple[int, int]:
        """Where the last function begins that does so before an address, and its record; zeros for none."""
        index = bisect_right(self._starts, address) - 1
        row = ROW.unpack_from(self.data, self.table + ROW.size * index) if index >= 0 else None
        return (self.address + row[0], self.address + row[1]) if row else (0, 0)

    def _size(self, record: int) -> int:
        """The bytes of code that a record of .eh_frame is about."""
        told = self._common(record)
        width, _ = WIDTHS.get(told.addresses & 15, (0, False)) if told else (0, False)
        size = self.layout.constant(self.data, record + 8 + width, width)
        return int.from_bytes(size, "little") if width and len(size) == width else 0

    def landings(self, address: int) -> tuple[int, ...] | None:
        """Where the function that an address is in goes on with an exception that it catches; None where that cannot be
        read. What only destroys and throws on is no catch."""
        start, record = self._row(address)
        told = self._common(record) if record else None
        if told is None or told.tables == OMITTED:
            return ()
        try:
            read = Reader(self.data, self.layout, record + 8 + 2 * WIDTHS[told.addresses & 15][0])
            read.number()  # how long what follows is
            table = read.pointer(told.tables)
            return tuple(exceptions.caught(Reader(self.data, self.layout, table), start)) if table else ()
        except (KeyError, IndexError):
            return None

    def _common(self, record: int) -> _Common | None:
        """What a record's common one says; None for what is none."""
        head = self.layout.constant(self.data, record, 8)
        if len(head) != 8:
            return None
        length, back = struct.unpack("<II", head)
        if not length or length == 0xFFFFFFFF or not back:
            return None
        at = record + 4 - back
        if at not in self._commons:
            self._commons[at] = self._told(at)
        return self._commons[at]

    def _told(self, record: int) -> _Common:
        """What the augmentation of a common record says."""
        read, told = Reader(self.data, self.layout, record + 8), dict[str, int]()
        try:
            version, letters = read.byte(), "".join(iter(lambda: chr(read.byte()), "\0"))
            if version in (1, 3) and letters.startswith("z"):
                _ = read.number(), read.number(), read.byte(), read.number()  # steps, a register, how long the rest is
                for letter in letters:
                    if letter in "LR":
                        told[letter] = read.byte()
                    elif letter == "P":
                        read.coded(read.byte())
        except (KeyError, IndexError):
            pass  # the rest of it is not told
        return _Common(told.get("R", 0), told.get("L", OMITTED))


class _Common(NamedTuple):
    """How a common record says that addresses, and tables of exceptions, are written."""

    addresses: int
    tables: int
