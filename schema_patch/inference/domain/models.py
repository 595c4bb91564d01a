"""The model file: what functions and methods outside a tree write. Strict about misspelt keys."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import msgspec
from msgspec.structs import replace

from schema_patch.schemas import aten


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs argument `callee` on the arguments from `first` on; packed: on those whose addresses stand in the array
    `first`."""

    callee: int
    first: int
    packed: bool = False


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Functions whose names fit a pattern, and the arguments that they write; the others are read."""

    pattern: str
    writes: tuple[int, ...]


class Aggregate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Elements of an object, by the end of its type's name: the first of `writes` that is there leads to what is
    written, what is at `more` may be too, and the rest is read."""

    type: str
    writes: tuple[str, ...]
    more: str
    first: str = ""  # what the text of the first element contains


class NameSet(frozenset[str]):
    """NameSet that stand in one string, with blanks between."""


class Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Functions and methods by what they do; models.toml says what each list means."""

    loads: NameSet
    reads: NameSet
    makes: NameSet
    metadata: NameSet
    views: NameSet
    dense: NameSet
    perhaps: NameSet
    pointers: NameSet
    constant_pointers: NameSet
    accessors: NameSet
    not_in_place: NameSet
    stores: NameSet
    atomics: NameSet
    products: NameSet


class Models(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    named: dict[str, tuple[int, ...]]  # the arguments that functions write, by position
    families: tuple[Family, ...]
    names: Lists
    aggregates: tuple[Aggregate, ...]
    aliases: dict[str, tuple[int, ...]]
    accessors: dict[str, int]
    launches: dict[str, Launch]
    methods: dict[str, tuple[int, ...]]  # the arguments that methods write
    several: dict[str, NameSet]

    def writes(self, name: str) -> tuple[int, ...] | None:
        """The arguments that a function of this name writes; None where nothing is known of it."""
        return self.named[name] if name in self.named else _family(name)

    def outs(self, name: str) -> int:
        """How many arguments a function of ATen writes by its name, `sort_out` and `sort_outf`."""
        plain, _, out = name.rpartition("_")
        if out not in ("out", "outf"):
            return 0
        return next((int(count) for count, names in self.several.items() if plain in names), 1)


@cache
def _family(name: str) -> tuple[int, ...] | None:
    found = (family.writes for family in load().families if re.fullmatch(family.pattern, name))
    return next(found, None)


@cache
def load() -> Models:
    """The models that ship with the kit."""
    data = (resources.files(__package__) / "models.toml").read_bytes()
    found = msgspec.toml.decode(data, type=Models, dec_hook=lambda _, text: NameSet(text.split()))
    views, perhaps = NameSet(found.names.views | aten.VIEWS), NameSet(found.names.perhaps | aten.PERHAPS)
    return replace(found, names=replace(found.names, views=views, perhaps=perhaps))
