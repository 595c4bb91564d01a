"""Which operators a person means: the one reading of names as `--ops` takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

NAME = re.compile(r"(?:(?P<namespace>\w+)::)?(?P<op>\w+)(?:\.(?P<overload>\w+))?")


@dataclass(frozen=True, slots=True)
class Selection:
    """Operators by name: `op` or `ns::op`, either with `.overload`. Without any name, all operators."""

    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Iterable[str]) -> Selection:
        """From what was typed: one by one, or with commas or spaces between. Raises ValueError where it is no name."""
        names = tuple(dict.fromkeys(name for word in words for name in word.replace(",", " ").split()))
        for name in names:
            if not NAME.fullmatch(name):
                raise ValueError(f"expected the name of an operator as op or ns::op, found {name!r}")
        return cls(names)

    def __bool__(self) -> bool:
        return bool(self.names)

    def takes(self, op: str, namespace: str | None = None) -> bool:
        """Whether this operator is meant. A namespace that is not known may be any."""
        return not self.names or any(_means(name, op, namespace) for name in self.names)

    def missing(self, seen: Iterable[tuple[str | None, str]]) -> tuple[str, ...]:
        """The names that fit none of these operators, given as (namespace, op)."""
        there = tuple(seen)
        return tuple(name for name in self.names if not any(_means(name, op, space) for space, op in there))


ALL = Selection()


def plain(name: str) -> str:
    """The operator's own name, without namespace and overload."""
    match = NAME.fullmatch(name)
    return match["op"] if match else name


def namespace_of(name: str) -> str | None:
    """The namespace that a name carries, if any."""
    return name.rpartition("::")[0] or None


def _means(name: str, op: str, namespace: str | None) -> bool:
    wanted = NAME.fullmatch(name)
    if wanted is None or wanted["op"] != plain(op):
        return False
    return wanted["namespace"] is None or not namespace or wanted["namespace"] == namespace
