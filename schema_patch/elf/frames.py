"""Where functions begin and end, by the tables that exceptions are thrown with: they are there in stripped files too.

Knows .eh_frame_hdr, which the loader reads by its segment, and the records of .eh_frame that it leads to (Linux
Standard Base, DWARF). Does not know what functions are called.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from .layout import Bytes, Layout

SORTED = (1, 0x1B, 0x03, 0x3B)  # version, and the encodings that every linker writes: pcrel, udata4, table relative
ROW = struct.Struct("<ii")
OMITTED, SIZES = 0xFF, {0: 8, 1: 0, 2: 2, 3: 4, 4: 8, 9: 0, 10: 2, 11: 4, 12: 8}


class Functions:
    """The functions of a library by address, found in the table without all of it being read."""

    def __init__(self, data: Bytes, layout: Layout) -> None:
        self.data, self.layout = data, layout
        self.count, self.table, self.address = 0, 0, 0
        part = layout.frames
        if part and part.end - part.start >= 12 and tuple(data[part.start : part.start + 4]) == SORTED:
            (count,) = struct.unpack_from("<I", data, part.start + 8)
            if part.start + 12 + ROW.size * count <= part.end:
                self.count, self.table, self.address = count, part.start + 12, part.address

    def around(self, address: int) -> tuple[int, int] | None:
        """Start and end of the function that an address is in; None where no record says."""
        index = bisect_right(_Starts(self), address) - 1
        if index < 0:
            return None
        start, record = (self.address + number for number in self._row(index))
        size = self._size(record)
        return (start, start + size) if size and start <= address < start + size else None

    def _row(self, index: int) -> tuple[int, int]:
        first, second = ROW.unpack_from(self.data, self.table + ROW.size * index)
        return int(first), int(second)

    def _size(self, record: int) -> int:
        """The bytes of code that a record of .eh_frame is about."""
        head = self.layout.constant(self.data, record, 8)
        if len(head) != 8:
            return 0
        length, back = struct.unpack("<II", head)
        if not length or length == 0xFFFFFFFF or not back:
            return 0
        width = SIZES.get(self._encoding(record + 4 - back) & 15, 0)
        size = self.layout.constant(self.data, record + 8 + width, width)
        return int.from_bytes(size, "little") if width and len(size) == width else 0

    def _encoding(self, record: int) -> int:
        """How a common record says that addresses are written: the R of its augmentation."""
        head = self.layout.constant(self.data, record, 64) or self.layout.constant(self.data, record, 24)
        if len(head) < 12 or head[8] not in (1, 3):
            return 0
        end = head.find(b"\0", 9)
        augmentation, at = head[9:end], end + 1
        if end < 0 or not augmentation.startswith(b"z"):
            return 0
        for _ in range(2):  # two numbers whose last byte has no upper bit
            while at < len(head) and head[at] & 0x80:
                at += 1
            at += 1
        at += 2  # the register of return addresses, and the size of what follows
        for letter in augmentation[1:].decode("latin-1"):
            if at >= len(head):
                return 0
            if letter == "R":
                return head[at]
            if letter == "P":
                at += 1 + SIZES.get(head[at] & 15, 0)
            elif letter == "L":
                at += 1
        return 0


class _Starts:
    """The addresses where functions start, as a sequence that can be searched."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def __len__(self) -> int:
        return self.functions.count

    def __getitem__(self, index: int) -> int:
        return self.functions.address + self.functions._row(index)[0]
