"""What was seen, as an operator table. Knows no torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from schema_patch.model import ToolError
from schema_patch.schemas import grammar, merging
from schema_patch.schemas import table as tables
from schema_patch.schemas.table import Entry, Table
from schema_patch.text import files

from . import judge
from .record import SeenRecord


def table(record: SeenRecord) -> Table:
    """An entry for each operator that was watched.

    A table knows no overloads: of several with the same arguments it says what any of them does, of others what the
    first does, the nameless one before all.

    Raises ToolError where two namespaces have an operator of one name that does different things.
    """
    entries: dict[str, Entry] = {}
    spaces: dict[str, None] = {}
    for _, seen in sorted(record.operators.items(), key=lambda item: ("." in item[0], item[0])):
        schema = grammar.parse(seen.schema)
        found = judge.effect(schema, seen)
        name, space = schema.op.partition(".")[0], schema.namespace or ""
        if found is None:
            continue
        spaces[space] = None
        writes = {*found.writes, *schema.writes}  # what it declares it is taken to write
        entry = Entry(
            arguments := tuple(arg.name for arg in schema.args), found.returns,
            writes=tuple(name for name in arguments if name in writes), namespaces=(space,),
            observed=seen.watched, evidence="; ".join([judge.evidence(seen), *judge.unsure(schema, seen)]),
            never_given=judge.never_given(schema, seen),
        )  # fmt: skip
        there = entries.get(name)
        if there is None:
            entries[name] = entry
        elif space in there.namespaces:
            entries[name] = _either(there, entry) if there.arguments == entry.arguments else there
        else:
            if (there.arguments, there.writes, there.returns) != (entry.arguments, entry.writes, entry.returns):
                others = ", ".join(there.namespaces)
                raise ToolError(f"{name} of {space} does something else than that of {others}: observe one --namespace")
            entries[name] = msgspec.structs.replace(
                there, namespaces=(*there.namespaces, space), observed=there.observed + entry.observed
            )
    return Table(tuple(spaces), entries, frozenset())


def _either(one: Entry, other: Entry) -> Entry:
    """What is to be said where it may be the one or the other."""
    writes, unseen = {*one.writes, *other.writes}, {*one.never_given} & {*other.never_given}
    return msgspec.structs.replace(
        one,
        returns=one.returns if one.returns == other.returns else "unknown",
        writes=tuple(name for name in one.arguments if name in writes),
        observed=one.observed + other.observed,
        evidence=f"{one.evidence}; {other.evidence}",
        never_given=tuple(name for name in one.arguments if name in unseen),
    )


def write(found: Table, path: Path) -> None:
    """Writes the table, added to the one that the file holds already. Raises ToolError where they contradict."""
    if not found.entries:
        why = "what torch.compile traces cannot be: TORCHDYNAMO_DISABLE=1"
        raise ToolError(f"no operator was watched ({why}): no table is written", str(path))
    there = [(tables.read_file(path), str(path))] if path.exists() else []
    files.write(path, merging.text(merging.merged([*there, (found, "this run")])).encode(), str(path))
