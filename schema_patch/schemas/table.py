"""What each known operator writes, from policies/*.toml and tables of users. Strict about misspelt keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path

import msgspec

from schema_patch.model import Effect, ToolError, is_argument
from schema_patch.schemas import policies

from .grammar import Schema


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operator of a policy file, as written there."""

    arguments: tuple[str, ...]
    returns: str
    published: bool = False
    writes: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    observed: int = 0  # in so many calls; 0: a person says it
    evidence: str = ""
    never_given: tuple[str, ...] = ()  # tensor arguments that no call had, where it was observed


class _Operators(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    namespaces: tuple[str, ...]
    operators: dict[str, Entry]
    recognised: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The operators of one policy file."""

    namespaces: tuple[str, ...]
    entries: dict[str, Entry]
    recognised: frozenset[str]

    def effect(self, schema: Schema, namespace: str | None = None) -> Effect | None:
        """What the operator of this schema does, or None where the table does not know it.

        The namespace may be unknown (a macro in source, nothing in a binary). An operator of the same name with other
        arguments is another operator.
        """
        entry = self.entry(schema.op)
        namespace = schema.namespace or namespace
        if entry is None or (namespace and namespace not in (entry.namespaces or self.namespaces)):
            return None
        if tuple(arg.name for arg in schema.args) != entry.arguments:
            return None
        written = {*entry.writes, *entry.inplace}
        writes = tuple(name for name in entry.arguments if name in written)
        return Effect(schema.op, writes, entry.returns, entry.evidence or "operator table")

    def entry(self, op: str) -> Entry | None:
        """What stands in the table of an operator; an overload of it is that operator."""
        return self.entries.get(op.partition(".")[0])

    def schema_of(self, path: str, op: str, function: str) -> str | None:  # noqa: ARG002  an inferred table knows
        """What torch infers of an operator that a file registers without a schema, by this expression."""
        return None

    @property
    def all_namespaces(self) -> tuple[str, ...]:
        """Every namespace that an operator of the table may have."""
        own = dict.fromkeys(self.namespaces)
        return tuple(own | {name: None for entry in self.entries.values() for name in entry.namespaces})

    def knows(self, name: str) -> bool:
        return name in self.entries or name in self.recognised


@cache
def everything() -> Table:
    """All operators of the library in one table: those to be patched, and those that only the guard can make right."""
    first, second = load("esimd"), load("esimd_moe")
    return Table(first.namespaces, {**first.entries, **second.entries}, first.recognised | second.recognised)


@cache
def load(policy: str = "esimd") -> Table:
    """The table of a policy that ships with the kit. Raises ToolError where the file breaks its own rules."""
    return read(policies.data(policy), policies.path(policy))


def read_file(path: str | PathLike[str], who: str = "") -> Table:
    """The table in a file, which `who` names. Raises ToolError where it cannot be read or is no table."""
    try:
        return read(Path(path).read_bytes(), str(path))
    except OSError as error:
        named = f"{who} names an operator table that cannot be read" if who else "cannot read the operator table"
        raise ToolError(f"{named}: {error.strerror}", str(path)) from error


def joined(tables: Iterable[Table]) -> Table:
    """Several tables as one; the first that knows an operator counts."""
    first, *others = tables
    if not others:
        return first
    entries = {name: entry for table in reversed([first, *others]) for name, entry in table.entries.items()}
    spaces = dict.fromkeys(space for table in (first, *others) for space in table.namespaces)
    recognised = frozenset().union(*(table.recognised for table in (first, *others)))
    return _Joined(tuple(spaces), entries, recognised, (first, *others))


@dataclass(frozen=True)
class _Joined(Table):
    """`entries` hold one of each name; what an operator does is asked of the tables."""

    tables: tuple[Table, ...] = ()

    def effect(self, schema: Schema, namespace: str | None = None) -> Effect | None:
        return next((found for table in self.tables if (found := table.effect(schema, namespace))), None)


def read(data: bytes, where: str) -> Table:
    """A table from the bytes of a policy file; `where` names it in errors."""
    try:
        policy = msgspec.toml.decode(data, type=_Operators)
    except msgspec.MsgspecError as error:
        raise ToolError(f"not an operator table: {error}", where) from error
    for name, entry in policy.operators.items():
        returns = filter(is_argument, Effect(name, (), entry.returns, where).results)
        for argument in (*entry.writes, *entry.inplace, *returns):
            if argument not in entry.arguments:
                raise ToolError(
                    f"operator {name}: '{argument}' is none of its arguments {', '.join(entry.arguments)}", where
                )
    return Table(policy.namespaces, policy.operators, frozenset(policy.recognised))
