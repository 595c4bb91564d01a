"""The model file: what functions and methods outside a tree write. Strict about misspelt keys."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import msgspec


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs argument `callee` on the arguments from `first` on; packed: on those whose addresses stand in the array
    `first`."""

    callee: int
    first: int
    packed: bool = False


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Intrinsics whose names fit a pattern, and the arguments that they write; the others are read."""

    pattern: str
    writes: tuple[int, ...]


class Aggregate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Elements of an object that lead to what is written, by the end of the name of its type."""

    type: str
    writes: tuple[str, ...]
    first: str = ""  # what the text of the first element contains


class _Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: str


class _Reads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: str
    loads: str


class _Methods(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    metadata: str
    views: str
    dense: str
    perhaps: str
    pointers: str
    constant_pointers: str
    accessors: str
    not_in_place: str
    stores: str
    atomics: str
    writes: dict[str, tuple[int, ...]]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    writes: dict[str, tuple[int, ...]]
    families: tuple[Family, ...]
    reads: _Reads
    makes: _Names
    aggregates: tuple[Aggregate, ...]
    aliases: dict[str, tuple[int, ...]]
    accessors: dict[str, int]
    launches: dict[str, Launch]
    methods: _Methods


class Models:
    """The file with its lists of names as sets."""

    def __init__(self, file: _File) -> None:
        self.named = file.writes
        self.families = [(re.compile(family.pattern), family.writes) for family in file.families]
        self.loads = frozenset(file.reads.loads.split())
        self.reads = frozenset(file.reads.names.split()) | self.loads
        self.makes = frozenset(file.makes.names.split())
        self.aggregates = file.aggregates
        self.aliases = file.aliases
        self.accessor_makers = file.accessors
        self.launches = file.launches
        methods = file.methods
        self.metadata = frozenset(methods.metadata.split())
        self.views = frozenset(methods.views.split())
        self.dense = frozenset(methods.dense.split())
        self.perhaps = frozenset(methods.perhaps.split()) | self.dense
        self.pointers = frozenset(methods.pointers.split())
        self.constant_pointers = frozenset(methods.constant_pointers.split())
        self.accessors = frozenset(methods.accessors.split())
        self.not_in_place = frozenset(methods.not_in_place.split())
        self.stores = frozenset(methods.stores.split())
        self.atomics = frozenset(methods.atomics.split())
        self.method_writes = methods.writes

    @cache  # noqa: B019  there is one of them
    def writes(self, name: str) -> tuple[int, ...] | None:
        """The arguments that a function of this name writes; None where nothing is known of it."""
        if name in self.named:
            return self.named[name]
        return next((writes for pattern, writes in self.families if pattern.fullmatch(name)), None)


@cache
def load() -> Models:
    """The models that ship with the kit."""
    data = (resources.files(__package__) / "models.toml").read_bytes()
    return Models(msgspec.toml.decode(data, type=_File))
