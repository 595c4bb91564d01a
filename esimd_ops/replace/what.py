"""Which operators are meant by the words of a caller or of the environment. Words in, names out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schema_patch.schemas import policies
from schema_patch.schemas import table as tables

RACES = "races"
OURS = "esimd_ops"  # the namespace of the operators that are put in


class Race(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operator whose work-groups read what another of the same launch writes."""

    operator: str
    argument: str
    what: str
    fixed: str = ""


class _RacesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    race: tuple[Race, ...]


def races() -> tuple[Race, ...]:
    """policies/races.toml."""
    return policies.load(RACES, _RacesFile).race


class ReplaceError(RuntimeError):
    """Nothing can be put in an operator's place; the message says why."""


def resolve(words: str | Iterable[str]) -> tuple[str, ...]:
    """`races`, `op` or `ns::op`, separated by commas where in one string -> every ns::op that is meant, each once.

    A name without namespace is meant in every namespace of the operator table but the kit's own. Raises ReplaceError.
    """
    parts = words.split(",") if isinstance(words, str) else words
    found: dict[str, None] = {}
    for word in (part.strip() for part in parts):
        if not word:
            continue
        for one in (race.operator for race in races()) if word == RACES else (word,):
            found |= dict.fromkeys(_everywhere(one))
    return tuple(found)


def _everywhere(word: str) -> tuple[str, ...]:
    namespace, _, name = word.rpartition("::")
    table = tables.load()
    if name not in table.entries or namespace == OURS:
        raise ReplaceError(
            f"replace: '{word}': expected '{RACES}', or an operator of {', '.join(table.namespaces)} as ns::op"
        )
    spaces = (namespace,) if namespace else (table.entries[name].namespaces or table.namespaces)
    return tuple(f"{space}::{name}" for space in spaces if space != OURS)
