"""A library -> the texts that its registrations are given, and where in the file each byte of them stands.

Knows that text lies in data or in instructions that hold it. Does not know what a schema is.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import dynamic, names
from .evidence import registrations
from .evidence.traced import NOWHERE
from .evidence.users import Users
from .layout import X86_64, Bytes, prove_whole
from .reader import titled


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


def read(data: Bytes, where: str) -> list[PlacedText]:
    """The texts of a library as far as they are known. Raises ToolError where the file is not whole."""
    layout = prove_whole(data, where)
    if layout.machine != X86_64:
        return []
    dyn = dynamic.read(data, layout, where)
    rows, users = registrations.trace(data, layout, dyn, where)
    functions = names.of(data, layout, {row.entry for row in rows})
    found = []
    for row in rows:
        if row.text is not None:
            offsets = (layout.offset(place, 1) if place != NOWHERE else None for place in row.places)
            title, space = titled(row, functions)
            found.append(
                PlacedText(
                    row.text, space, title, tuple(NOWHERE if at is None else at for at in offsets), row.places, users
                )
            )
    return found
