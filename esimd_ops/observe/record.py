"""What was seen of each operator: numbers and places that add up, over calls, processes and runs. Knows no torch."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from schema_patch.model import ToolError

VERSION = 1
STARTED = time.time_ns()  # with the process's number its name, which an older one may have had


class Where(msgspec.Struct):
    """A call: who made it, as file:line, with what, and the how many-th of its operator it was."""

    place: str
    shapes: str
    call: int

    def __str__(self) -> str:
        return f"{self.place} with {self.shapes}" if self.shapes else self.place


class Times(msgspec.Struct):
    """How often something was seen, the first time, and of bytes how many at most; `of`: among so many."""

    first: Where
    calls: int = 1
    bytes: int = 0
    of: int = 0

    def add(self, other: Times) -> None:
        self.calls += other.calls
        if other.bytes > self.bytes:
            self.bytes, self.of = other.bytes, other.of


class Kept(msgspec.Struct):
    """A result in memory that was handed out before, not by this call. `ring`: so many calls before, at least.
    `argument`: it was not handed out, but given, as this."""

    times: Times
    op: str
    before: Where
    ring: int
    argument: str = ""


class Result(msgspec.Struct):
    """What one result of an operator was, by number of calls. `same`, `view`: by argument; `twins`: by the
    number of another result."""

    fresh: int = 0
    same: dict[str, Times] = {}
    view: dict[str, Times] = {}
    twins: dict[str, Times] = {}
    kept: Kept | None = None
    without: dict[str, int] = {}  # fresh while this argument was not given


class Operator(msgspec.Struct):
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
    writes: dict[str, Times] = {}
    either: dict[str, Times] = {}
    same: dict[str, Times] = {}
    outside: dict[str, Times] = {}
    earlier: dict[str, Times] = {}
    meanwhile: dict[str, Times] = {}
    results: list[Result] = []
    unwatched: dict[str, int] = {}
    allowed: dict[str, int] = {}  # calls that a test allows to lie, by its reason


class Record(msgspec.Struct):
    """What some processes saw. `namespaces`: those asked for; none for all that are not torch's own. `others`: those
    that have operators too, and are not torch's own."""

    operators: dict[str, Operator] = {}
    namespaces: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    processes: int = 1
    spent_s: float = 0.0
    ran_s: float = 0.0
    notes: tuple[str, ...] = ()
    version: int = VERSION


def tell(table: dict[str, Times], name: str, times: Times) -> None:
    """Adds to what was seen under this name."""
    if name in table:
        table[name].add(times)
    else:
        table[name] = times


def merged(records: Iterable[Record]) -> Record:
    """All that these records hold; whose is the first call of two is decided by their order."""
    found = Record(processes=0)
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


def only(record: Record, namespaces: tuple[str, ...]) -> Record:
    """What it says of these namespaces; of all where none is named."""
    if not namespaces:
        return record
    found = {op: seen for op, seen in record.operators.items() if op.partition("::")[0] in namespaces}
    others = {*record.others, *(op.partition("::")[0] for op in record.operators)} - {*namespaces}
    return msgspec.structs.replace(record, operators=found, namespaces=namespaces, others=tuple(sorted(others)))


def add(one: Operator, other: Operator) -> Operator:
    """Adds to the one what was seen in other calls."""
    one.first = one.first or other.first
    one.calls += other.calls
    one.watched += other.watched
    one.rested |= other.rested
    for mine, more in ((one.given, other.given), (one.unwatched, other.unwatched), (one.allowed, other.allowed)):
        for name, count in more.items():
            mine[name] = mine.get(name, 0) + count
    for field in ("writes", "either", "same", "outside", "earlier", "meanwhile"):
        for name, times in getattr(other, field).items():
            tell(getattr(one, field), name, times)
    if not one.results:
        one.results = other.results
    elif other.results:
        for result, theirs in zip(one.results, other.results, strict=True):
            _add_result(result, theirs)
    return one


def _add_result(one: Result, other: Result) -> None:
    one.fresh += other.fresh
    for field in ("same", "view", "twins"):
        for name, times in getattr(other, field).items():
            tell(getattr(one, field), name, times)
    for name, count in other.without.items():
        one.without[name] = one.without.get(name, 0) + count
    if one.kept and other.kept:
        one.kept.times.add(other.kept.times)
        one.kept.ring = min(one.kept.ring, other.kept.ring)
    else:
        one.kept = one.kept or other.kept


def read(path: str | Path) -> Record:
    """What processes left in a file. Raises ToolError where it is no such file."""
    try:
        record = msgspec.json.decode(Path(path).read_bytes(), type=Record)
    except OSError as error:
        raise ToolError(f"cannot read what was observed: {error.strerror}", str(path)) from error
    except msgspec.MsgspecError as error:
        raise ToolError(f"not a record of `observe`: {error}", str(path)) from error
    if record.version != VERSION:
        raise ToolError(f"expected a record of version {VERSION}, found {record.version}", str(path))
    return record


def write(folder: Path, record: Record) -> None:
    """This process's part, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{os.getpid()}-{STARTED}.json"
    new = part.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(record))
    new.replace(part)


def collect(folder: Path) -> Record | None:
    """What all processes left in a folder so far; None where none did."""
    parts = sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    return merged(map(read, parts)) if parts else None


def recorded(path: Path) -> Record:
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
