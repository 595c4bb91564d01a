"""What is known of the operators of one namespace: what the caller says, then what operator tables say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from schema_patch.model import Effect
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.table import Table

Said = Mapping[str, Effect]  # by operator, without namespace


@dataclass(frozen=True)
class Known:
    """The newest word counts: of the caller about one operator, and of tables in their order."""

    said: Said = field(default_factory=dict)
    tables: tuple[Table, ...] = ()

    def effect(self, schema: Schema) -> Effect | None:
        found = self.said.get(schema.op)
        return found or next((effect for table in self.tables if (effect := table.effect(schema))), None)

    def extended(self, said: Said, tables: Iterable[Table]) -> Known:
        tables = tuple(tables)
        return Known({**self.said, **said}, (*tables, *(table for table in self.tables if table not in tables)))


def to_text(known: Mapping[str, Known], without: Iterable[Table]) -> str:
    """What another process needs to know the same. `without`: the tables that it has itself."""
    own = tuple(without)
    written = {space: Known(each.said, tuple(t for t in each.tables if t not in own)) for space, each in known.items()}
    return msgspec.json.encode(written, order="deterministic").decode()


def from_text(text: str, tables: Iterable[Table]) -> dict[str, Known]:
    """What `to_text` wrote; `tables` are those that this process has itself."""
    own = tuple(tables)
    written = msgspec.json.decode(text, type=dict[str, Known])
    return {space: Known(each.said, (*each.tables, *own)) for space, each in written.items()}


def of_caller(
    namespaces: tuple[str, ...], writes: Mapping[str, str | Iterable[str]], returns: Mapping[str, str | Iterable[str]]
) -> dict[tuple[str, str], Effect]:
    """What the caller says of operators, by namespace and name; an operator may be named with its namespace."""
    found: dict[tuple[str, str], Effect] = {}
    for op in {**writes, **returns}:
        namespace, _, name = op.rpartition("::")
        for space in [namespace] if namespace else namespaces:
            said = returns.get(op, "unknown")
            written, result = _words(writes.get(op, ())), said if isinstance(said, str) else ", ".join(said)
            found[space, name] = Effect(name, written, result, "the caller")
    return found


def _words(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
