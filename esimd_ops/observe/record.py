"""What was seen of each operator: numbers and places that add up, over calls, processes and runs. Knows no torch."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from esimd_ops.trials import files

VERSION = 1
STARTED = time.time_ns()  # with the process's number its name, which an older one may have had


class Where(msgspec.Struct):
    """A call: who made it, as file:line, with what, and the how many-th of its operator it was."""

    place: str
    shapes: str
    call: int

    def __str__(self) -> str:
        return f"{self.place} with {self.shapes}" if self.shapes else self.place


class TimesSeen(msgspec.Struct):
    """How often something was seen, the first time, and of bytes how many at most; `of`: among so many."""

    first: Where
    calls: int = 1
    bytes: int = 0
    of: int = 0

    def add(self, other: TimesSeen) -> None:
        self.calls += other.calls
        if other.bytes > self.bytes:
            self.bytes, self.of = other.bytes, other.of


class KeptSeen(msgspec.Struct):
    """A result in memory that was handed out before, not by this call. `ring`: so many calls before, at least.
    `argument`: it was not handed out, but given, as this."""

    times: TimesSeen
    op: str
    before: Where
    ring: int
    argument: str = ""


class ResultSeen(msgspec.Struct):
    """What one result of an operator was, by number of calls. `same`, `view`: by argument; `twins`: by the
    number of another result."""

    fresh: int = 0
    same: dict[str, TimesSeen] = {}
    view: dict[str, TimesSeen] = {}
    twins: dict[str, TimesSeen] = {}
    kept: KeptSeen | None = None
    without: dict[str, int] = {}  # fresh while this argument was not given


class OperatorSeen(msgspec.Struct):
    """One overload. What is counted by argument says in how many watched calls.

    given    it was there, and held bytes
    writes   bytes of it changed that belong to no argument declared as written
    either   the same, where they belong to several: "x or out"
    same     it was written, and no byte changed
    outside  bytes beside the arguments changed, in the storage of one
    earlier  what was handed out before, or given, changed and was no argument of this call
    meanwhile  the same, where another thread may have changed it
    unwatched  calls that could not be watched, by the reason
    """

    schema: str
    first: Where | None = None
    calls: int = 0
    watched: int = 0
    rested: bool = False
    given: dict[str, int] = {}
    writes: dict[str, TimesSeen] = {}
    either: dict[str, TimesSeen] = {}
    same: dict[str, TimesSeen] = {}
    outside: dict[str, TimesSeen] = {}
    earlier: dict[str, TimesSeen] = {}
    meanwhile: dict[str, TimesSeen] = {}
    results: list[ResultSeen] = []
    unwatched: dict[str, int] = {}
    allowed: dict[str, int] = {}  # calls that a test allows to lie, by its reason


class SeenRecord(msgspec.Struct):
    """What some processes saw. `namespaces`: those asked for; none for all that are not torch's own. `others`: those
    that have operators too, and are not torch's own."""

    operators: dict[str, OperatorSeen] = {}
    namespaces: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    processes: int = 1
    spent_s: float = 0.0
    ran_s: float = 0.0
    notes: tuple[str, ...] = ()
    version: int = VERSION


def tell(table: dict[str, TimesSeen], name: str, times: TimesSeen) -> None:
    """Adds to what was seen under this name."""
    if name in table:
        table[name].add(times)
    else:
        table[name] = times


def merged(records: Iterable[SeenRecord]) -> SeenRecord:
    """All that these records hold; whose is the first call of two is decided by their order."""
    found = SeenRecord(processes=0)
    for record in records:
        found.namespaces = tuple(dict.fromkeys((*found.namespaces, *record.namespaces)))
        found.others = tuple(sorted({*found.others, *record.others}))
        found.notes = tuple(dict.fromkeys((*found.notes, *record.notes)))
        found.processes += record.processes
        found.spent_s += record.spent_s
        found.ran_s += record.ran_s
        for op, seen in record.operators.items():
            there = found.operators.get(op)
            key = op if there is None or there.schema == seen.schema else seen.schema  # two of one name
            found.operators[key] = add(found.operators[key], seen) if key in found.operators else seen
    return found


def only(record: SeenRecord, namespaces: tuple[str, ...]) -> SeenRecord:
    """What it says of these namespaces; of all where none is named."""
    if not namespaces:
        return record
    found = {op: seen for op, seen in record.operators.items() if op.partition("::")[0] in namespaces}
    others = {*record.others, *(op.partition("::")[0] for op in record.operators)} - {*namespaces}
    return msgspec.structs.replace(record, operators=found, namespaces=namespaces, others=tuple(sorted(others)))


def count(table: dict[str, int], name: str, more: int = 1) -> None:
    table[name] = table.get(name, 0) + more


def add(one: OperatorSeen, other: OperatorSeen) -> OperatorSeen:
    """Adds to the one what was seen in other calls."""
    one.first = one.first or other.first
    _add_counts(one, other)
    if not one.results:
        one.results = other.results
    elif other.results:
        for result, theirs in zip(one.results, other.results, strict=True):
            _add_counts(result, theirs)
            if result.kept and theirs.kept:
                result.kept.times.add(theirs.kept.times)
                result.kept.ring = min(result.kept.ring, theirs.kept.ring)
            else:
                result.kept = result.kept or theirs.kept
    return one


def _add_counts(one: msgspec.Struct, other: msgspec.Struct) -> None:
    """Numbers, what either says, and what is counted or was seen by name."""
    for field in one.__struct_fields__:
        mine, theirs = getattr(one, field), getattr(other, field)
        if isinstance(mine, dict):
            for name, value in theirs.items():
                (count if isinstance(value, int) else tell)(mine, name, value)
        elif isinstance(mine, int):
            setattr(one, field, mine or theirs if isinstance(mine, bool) else mine + theirs)


def read(path: str | Path) -> SeenRecord:
    """What processes left in a file. Raises ToolError where it is no such file."""
    return files.read(str(path), SeenRecord, "record of `observe`", version=VERSION)


def write(folder: Path, record: SeenRecord) -> None:
    """This process's part, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{os.getpid()}-{STARTED}.json"
    new = part.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(record))
    new.replace(part)


def collect(folder: Path) -> SeenRecord | None:
    """What all processes left in a folder so far; None where none did."""
    parts = sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    return merged(map(read, parts)) if parts else None


def recorded(path: Path) -> SeenRecord:
    """What a file holds, with what processes left beside it that ended in the middle. Raises ToolError."""
    if parts_of(path).is_dir():
        gather(path)
    return read(path)


def gather(path: Path) -> None:
    """Puts the parts of all processes, which lie in PATH.d, into the file."""
    with open(f"{path}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if record := collect(parts_of(path)):
            new = path.with_name(f"{path.name}.new")
            new.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
            new.replace(path)


def parts_of(path: Path) -> Path:
    """Where the processes that observe into this file put their parts."""
    return path.with_name(f"{path.name}.d")
