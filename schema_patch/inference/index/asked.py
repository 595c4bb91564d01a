"""Which names of a tree were looked up, and for whom: whoever asked for no name that changed need not be asked again.

A name stands for all its definitions, those to come too; the path of a file stands for its text, and `read_as` of a
function for the text of all functions of its name there. Knows none of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar
from zlib import crc32

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")
EVERY_RUN = "\0"  # looked up for what is read anew in every run


class Asked:
    """The names that were looked up since the innermost `apart` began."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @contextmanager
    def apart(self) -> Iterator[set[str]]:
        """Collects what is looked up within, which whoever is outside has not asked for."""
        outer, self.names = self.names, set()
        try:
            yield self.names
        finally:
            self.names = outer


class Definitions(dict[str, V]):
    """What each name stands for; notes every name that is looked up, found or not."""

    def __init__(self, found: dict[str, V], asked: Asked) -> None:
        super().__init__(found)
        self.asked = asked

    def __contains__(self, name: object) -> bool:
        self.asked.names.add(str(name))
        return dict.__contains__(self, name)

    def __getitem__(self, name: str) -> V:
        self.asked.names.add(name)
        return dict.__getitem__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.names.add(name)
        return dict.get(self, name, default)


def remembered(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A cache of a method's results, kept by the object; a result that is given again was asked for again."""
    held = f"_{method.__name__}"

    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:
        known: dict[object, tuple[R, set[str]]] = self.__dict__.setdefault(held, {})
        found = known.get(arguments)
        if found is None:
            with self.asked.apart() as names:
                found = known[arguments] = method(self, *arguments, **named), names
        self.asked.names |= found[1]
        return found[0]

    update_wrapper(call, method)
    return call


@cache
def number(name: str) -> int:
    """A name in four bytes; two names of one number only mean that something is asked again without need."""
    return crc32(name.encode("utf-8", "surrogateescape"))


def packed(names: Iterable[int]) -> bytes:
    return array("I", sorted(names)).tobytes()


def touches(asked: bytes, changed: frozenset[int]) -> bool:
    """Whether any of the packed names is among those that changed."""
    return not changed.isdisjoint(memoryview(asked).cast("I"))
