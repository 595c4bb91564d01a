"""A library -> the texts that its registrations are given, and where in the file each byte of them stands.

Knows that text lies in data or in instructions that hold it. Does not know what a schema is.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import names, reader
from .dynamic import Dynamic
from .evidence import registrations
from .evidence.registrations import ReadRegistration
from .evidence.traced import NOWHERE
from .evidence.users import Users
from .layout import Bytes, Layout
from .reader import ElfFacts


@dataclass(frozen=True, slots=True)
class PlacedText:
    """What one registration is given. `offsets`: of each byte in the file, `places`: its address; NOWHERE if not known.

    `space`: the namespace, empty where it is not known; `function`: where the registration is made.
    """

    text: str
    space: str
    function: str
    offsets: tuple[int, ...]
    places: tuple[int, ...]
    users: Users

    def user(self, index: int) -> str:
        """Who uses this byte beside the registration, in words; empty where nobody does."""
        return self.users.of(self.places, index) if self.places[index] != NOWHERE else ""


def read(path: str, name: str | None = None) -> tuple[ElfFacts, list[PlacedText]]:
    """What reader.py reads of a library, and the texts as far as they are known. Raises ToolError, as that does."""
    found: list[PlacedText] = []

    def follow(data: Bytes, layout: Layout, dyn: Dynamic, where: str) -> list[ReadRegistration]:
        rows, users = registrations.trace(data, layout, dyn, where)
        functions = names.of(data, layout, {row.entry for row in rows})
        for row in rows:
            if row.text is not None:
                offsets = (layout.offset(place, 1) if place != NOWHERE else None for place in row.places)
                at = tuple(NOWHERE if offset is None else offset for offset in offsets)
                title, space = reader.titled(row, functions)
                found.append(PlacedText(row.text, space, title, at, row.places, users))
        return rows

    facts = reader.read(path, name, follow=follow)
    return (reader.read(path, name) if facts.unread else facts), found  # places keep values apart that are equal
