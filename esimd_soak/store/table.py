"""Runs on disk -> columns in memory. Built to read a million generations in seconds; knows no statistics.

A line becomes some forty bytes of columns as it is read; texts stay on disk but for a few examples.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from esimd_soak.model import ToolError
from esimd_soak.score import KINDS

from . import folder as store
from .folder import Meta
from .records import Event, Generation, Measured, Watched

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLES = 12
BIT = {kind: 1 << i for i, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """The finished generations of one server of one run, warm-up left out, in the order in which they ended."""

    run: str
    server: str
    card: str
    end: NDArray[np.float64]
    start: NDArray[np.float64]
    first: NDArray[np.float64]
    tokens: NDArray[np.int64]
    kinds: NDArray[np.int64]
    judged: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    """False where there was an error; some of those were judged by what was received."""
    gaps: dict[int, int]
    drafted: int
    accepted: int


@dataclass(slots=True)
class RunTable:
    metas: list[Meta] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of the runs, as in `metas`; the folder is added where two have one name."""
    groups: list[ServerGroup] = field(default_factory=list)
    events: list[tuple[str, Event]] = field(default_factory=list)
    watched: list[tuple[str, Watched]] = field(default_factory=list)
    errors: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """(run, server) -> error kind -> how many"""
    warm: int = 0

    def plan(self, run: str) -> dict[str, Any]:
        return self.metas[self.names.index(run)].plan


class _Columns:
    def __init__(self, card: str) -> None:
        self.card = card
        self.reals = {name: array("d") for name in ("end", "start", "first")}
        self.numbers = {name: array("q") for name in ("tokens", "kinds")}
        self.flags = {name: array("b") for name in ("judged", "whole")}
        self.gaps: Counter[int] = Counter()
        self.drafted = self.accepted = 0

    def add(self, row: Measured, kinds: int) -> None:
        self.reals["end"].append(row.end)
        self.reals["start"].append(row.start)
        self.reals["first"].append(row.first)
        self.numbers["tokens"].append(row.tokens)
        self.numbers["kinds"].append(kinds)
        self.flags["judged"].append(row.judged)
        self.flags["whole"].append(not row.error)
        self.gaps.update(row.gaps)
        self.drafted += row.drafted
        self.accepted += row.accepted

    def group(self, run: str, server: str) -> ServerGroup:
        import numpy as np

        order = np.argsort(np.frombuffer(self.reals["end"]), kind="stable")
        kinds = ((self.reals, np.float64), (self.numbers, np.int64), (self.flags, np.bool_))
        columns: dict[str, Any] = {
            name: np.frombuffer(column, kind)[order] for these, kind in kinds for name, column in these.items()
        }
        counts: dict[str, Any] = {"gaps": dict(self.gaps), "drafted": self.drafted, "accepted": self.accepted}
        return ServerGroup(run, server, self.card, **columns, **counts)


def read(folders: Sequence[Path]) -> RunTable:
    """All runs together, their servers apart. ToolError when a run is given twice, also inside a merged one."""
    table = RunTable()
    seen: dict[str, Path] = {}
    names: set[str] = set()
    for folder in folders:
        meta = store.read_meta(folder)
        for known in [meta.id, *(str(part["id"]) for part in meta.parts)]:
            if known in seen:
                raise ToolError(f"this run was given already, as {seen[known]}; a generation counts once", str(folder))
            seen[known] = folder
        table.metas.append(meta)
        run = meta.name
        while run in names:
            run += f" ({folder.name})"
        names.add(run)
        table.names.append(run)
        _read_run(table, folder, run)
        for event in store.read(folder, "events", Event):
            table.events.append((run, event))
        for watched in store.read(folder, "watch", Watched):
            table.watched.append((run, watched))
    return table


def _read_run(table: RunTable, folder: Path, run: str) -> None:
    columns: dict[str, _Columns] = {}
    codes: dict[tuple[str, ...], int] = {(): 0}
    for row in store.read(folder, "generations", Measured):
        if row.warm:
            table.warm += 1
            continue
        if row.kinds not in codes:
            codes[row.kinds] = sum(BIT.get(kind, 0) for kind in row.kinds)
        if row.server not in columns:
            columns[row.server] = _Columns(row.card)
        columns[row.server].add(row, codes[row.kinds])
        if why := row.error or row.unjudged:
            counts = table.errors.setdefault((run, row.server), {})
            kind = why.split(":")[0]
            counts[kind] = counts.get(kind, 0) + 1
    table.groups += [column.group(run, server) for server, column in sorted(columns.items())]


def examples(folders: Sequence[Path], limit: int = EXAMPLES) -> list[Generation]:
    """The first failed generations with their text; only lines that carry a text are decoded."""
    found: list[Generation] = []
    decode = msgspec.json.Decoder(Generation).decode
    for folder in folders:
        for path in store.segments(folder, "generations"):
            with path.open("rb", buffering=2**20) as file:
                for line in file:
                    if b'"kinds":[' in line and line.endswith(b"\n"):
                        example = decode(line)
                        if not example.warm:
                            found.append(example)
                    if len(found) >= limit:
                        return found
    return found
