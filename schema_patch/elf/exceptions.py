"""A function's table of exceptions: where it goes on with those that it catches (Itanium C++ ABI: Exception Handling).

Knows the table that the personality routines of gcc and clang read. Does not know what is thrown.
"""

from __future__ import annotations

from collections.abc import Iterator

from .layout import Bytes, Layout

OMITTED, RELATIVE = 0xFF, 0x10
WIDTHS = {0: (8, False), 2: (2, False), 3: (4, False), 4: (8, False), 10: (2, True), 11: (4, True), 12: (8, True)}
ULEB, SLEB = 1, 9


class Reader:
    """Numbers and addresses from a place on. Raises IndexError behind what is loaded, KeyError for a form not known."""

    def __init__(self, data: Bytes, layout: Layout, at: int) -> None:
        self.data, self.layout, self.at = data, layout, at

    def byte(self) -> int:
        found = self.layout.constant(self.data, self.at, 1)[0]
        self.at += 1
        return found

    def number(self, *, signed: bool = False) -> int:
        """One of as many bytes as it takes (LEB128)."""
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result - (1 << shift) if signed and byte & 0x40 else result

    def coded(self, form: int) -> int:
        """A number in one of the forms that tables name."""
        if form & 15 in (ULEB, SLEB):
            return self.number(signed=form & 15 == SLEB)
        width, signed = WIDTHS[form & 15]
        raw = self.layout.constant(self.data, self.at, width)
        if len(raw) < width:
            raise IndexError(self.at)
        self.at += width
        return int.from_bytes(raw, "little", signed=signed)

    def pointer(self, form: int) -> int:
        """An address that is written as its distance from where it stands; 0 for none."""
        at = self.at
        found = self.coded(form)
        if found and form & 0xF0 != RELATIVE:
            raise KeyError(form)
        return found and at + found


def caught(table: Reader, start: int) -> Iterator[int]:
    """The addresses where the function that begins at `start` goes on with what it catches."""
    form = table.byte()
    base = start if form == OMITTED else table.pointer(form)
    if table.byte() != OMITTED:
        table.number()  # where its types end
    form = table.byte()
    size = table.number()
    actions = table.at + size
    while table.at < actions:
        _, _, landing = table.coded(form), table.coded(form), table.coded(form)
        action = table.number()
        if landing and action and _catches(table, actions + action - 1):
            yield base + landing


def _catches(table: Reader, record: int) -> bool:
    """Whether one of a chain of actions is more than to destroy what goes out of scope."""
    actions = Reader(table.data, table.layout, record)
    for _ in range(1 << 10):
        kind = actions.number(signed=True)
        at = actions.at
        more = actions.number(signed=True)
        if kind or not more:
            return bool(kind)
        actions.at = at + more
    return True
