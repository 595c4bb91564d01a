"""Tables of several origins made one, and written. What was observed adds up; what a person says must not contradict.

An observation shows what happens, never what does not: a write that a person names and nobody saw is no contradiction,
one that was seen and nobody names is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from schema_patch.model import Effect, ToolError, buffers_kept

from .table import Entry, Table

HEAD = """\
# What operators do to their arguments, as a table for `guard.enable(table=...)`, SCHEMA_KIT_TABLE and `--table`.
# Entries with `observed` were seen in so many calls (`python -m esimd_ops observe`): `writes` are arguments that are
# declared as written or whose bytes changed; whether their old contents are read is not known.
"""


def merged(parts: Iterable[tuple[Table, str]]) -> Table:
    """One table of several, each with the name of its origin. Raises ToolError for the first contradiction."""
    entries: dict[str, tuple[Entry, str]] = {}
    spaces: dict[str, None] = {}
    recognised: frozenset[str] = frozenset()
    for table, where in parts:
        spaces |= dict.fromkeys(table.all_namespaces)
        recognised |= table.recognised
        for op, entry in table.entries.items():
            entry = msgspec.structs.replace(entry, namespaces=entry.namespaces or table.namespaces)
            if op not in entries:
                entries[op] = (entry, where)
                continue
            there, origin = entries[op]
            entries[op] = (_one(op, (there, origin), (entry, where)), origin if there.observed == 0 else where)
    return Table(tuple(spaces), {op: entry for op, (entry, _) in entries.items()}, recognised)


def text(table: Table) -> str:
    """The table as TOML, as `table.read` takes it."""
    lines = [HEAD, f"namespaces = {_value(table.namespaces)}"]
    lines += [f"recognised = {_value(sorted(table.recognised))}"] if table.recognised else []
    for op, entry in table.entries.items():
        lines += ["", f"[operators.{op}]"]
        defaults = Entry((), "")
        for field in msgspec.structs.fields(Entry):
            value = getattr(entry, field.name)
            if field.name == "namespaces" and set(value) == set(table.namespaces):
                continue
            if field.required or value != getattr(defaults, field.name):
                lines.append(f"{field.name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _one(op: str, one: tuple[Entry, str], other: tuple[Entry, str]) -> Entry:
    (a, _), (b, _) = one, other
    if a.arguments != b.arguments:
        raise _contradiction(op, one, other, "they have other arguments: two versions of the operator")
    spaces = tuple(dict.fromkeys((*a.namespaces, *b.namespaces)))
    if a.observed and b.observed:
        written = {*a.writes, *b.writes}
        return msgspec.structs.replace(
            a, writes=tuple(name for name in a.arguments if name in written), returns=_returns(a.returns, b.returns),
            namespaces=spaces, observed=a.observed + b.observed, evidence=_joined(a.evidence, b.evidence),
            never_given=tuple(name for name in a.never_given if name in b.never_given),
        )  # fmt: skip
    said, seen = (b, a) if a.observed else (a, b)
    more = set(_written(seen)) - set(_written(said))
    if not seen.observed:
        more |= set(_written(said)) - set(_written(seen))
    if more:
        raise _contradiction(op, one, other, f"'{min(more)}' is written in the one and not in the other")
    if said.returns != seen.returns and not (seen.observed and _agree(said, seen)):
        raise _contradiction(op, one, other, f"one returns '{said.returns}', the other '{seen.returns}'")
    return msgspec.structs.replace(said, namespaces=spaces)


def _written(entry: Entry) -> tuple[str, ...]:
    return (*entry.writes, *entry.inplace)


def _returns(one: str, other: str) -> str:
    """What two observations say of results together: memory that is kept may look new for a while."""
    words = [_result(a, b) for a, b in _pairs(one, other)]
    return words[0] if len(set(words)) == 1 else ", ".join(words)


def _pairs(one: str, other: str) -> Iterable[tuple[str, str]]:
    """Word by word; a single one is said of all results."""
    a, b = Effect("", (), one, "").results, Effect("", (), other, "").results
    count = max(len(a), len(b))
    return zip(a if len(a) == count else a * count, b if len(b) == count else b * count, strict=False)


def _result(one: str, other: str) -> str:
    if one == other:
        return one
    if buffers_kept(one) and buffers_kept(other):
        return min(one, other, key=buffers_kept)
    kept = [word for word in (one, other) if buffers_kept(word)]
    return kept[0] if kept and "fresh" in (one, other) else "unknown"


def _agree(said: Entry, seen: Entry) -> bool:
    """Whether what was seen of results leaves standing what a person says of them."""
    return all(
        one == other
        or "unknown" in (one, other)
        or (bool(buffers_kept(one)) and (other == "fresh" or bool(buffers_kept(other))))
        or (other == "fresh" and one in seen.never_given)
        for one, other in _pairs(said.returns, seen.returns)
    )


def _contradiction(op: str, one: tuple[Entry, str], other: tuple[Entry, str], why: str) -> ToolError:
    told = "; ".join(f"{where}: {_says(entry)}" for entry, where in (one, other))
    return ToolError(f"operator {op} is described twice, differently: {why}. {told}. Take out the one that is wrong")


def _says(entry: Entry) -> str:
    what = f"writes {', '.join(_written(entry)) or 'nothing'}, returns {entry.returns}"
    return f"{what} (observed: {entry.evidence})" if entry.observed else f"{what} (said by a person)"


def _joined(one: str, other: str) -> str:
    return one if one == other else f"{one}; {other}"


def _value(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, bool) else str(value).lower()
