"""A run on disk: a folder of JSON Lines that only grow. Knows files and records; no network and no statistics.

    meta.json                     the plan, its digest, the client; written once, whole
    generations-CLIENT-k.jsonl    one line a generation      a session of a client has its own three files, so that
    events-CLIENT-k.jsonl         what happened              a resumed run appends nothing to a torn line and the
    watch-CLIENT-k.jsonl          the servers' counters      files of many clients lie side by side in a merged run

Each record is one write(2) at its end: after kill -9 every finished generation is there, at most the last line torn.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from esimd_soak import __version__
from esimd_soak.model import ToolError
from esimd_soak.plan import Plan, digest, plain

from .records import READABLE, VERSION, Event, Generation, Watched

T = TypeVar("T")
FILES = {"generations": Generation, "events": Event, "watch": Watched}


class Meta(msgspec.Struct, frozen=True):
    version: int
    id: str
    plan: dict[str, Any]
    digest: str
    client: dict[str, str]
    registration: dict[str, Any] | None = None
    parts: list[dict[str, Any]] = []
    """The runs that a merged one was made of: id, folder name, digest."""

    @property
    def name(self) -> str:
        return str(self.plan.get("name", "run"))


class RunStore:
    """Appends to a run; a second client at the same folder is refused."""

    def __init__(self, folder: Path, meta: Meta, lock: int, session: str) -> None:
        self.folder, self.meta, self._lock = folder, meta, lock
        self._files = {
            kind: os.open(folder / f"{kind}-{session}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            for kind in FILES
        }
        self._encode = msgspec.json.Encoder().encode

    def add(self, record: Generation | Event | Watched) -> None:
        kind = "generations" if isinstance(record, Generation) else "events" if isinstance(record, Event) else "watch"
        data = self._encode(record) + b"\n"
        written = os.write(self._files[kind], data)
        if written != len(data):  # a full disk: a torn line in the middle would void the file
            raise ToolError(f"the disk took {written} of {len(data)} bytes; is it full?", str(self.folder))

    def sync(self) -> None:
        for file in self._files.values():
            os.fsync(file)

    def close(self) -> None:
        self.sync()
        for file in (*self._files.values(), self._lock):
            os.close(file)


def open_run(folder: Path, plan: Plan, registration: dict[str, Any] | None = None) -> RunStore:
    """Begins a run, or goes on with one of the same plan. ToolError where the folder holds another."""
    import fcntl  # runs that exist can be read where it is not there

    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ToolError(
            "another client is writing this run; give each client a folder of its own", str(folder)
        ) from None
    client = socket.gethostname()
    if (folder / "meta.json").exists():
        meta = read_meta(folder)
        if meta.version != VERSION:
            raise ToolError(
                f"the run was begun with format {meta.version}, this is {VERSION}; begin a new one", str(folder)
            )
        if meta.digest != digest(plan):
            raise ToolError(
                f"the folder holds a run of another plan (expected digest {digest(plan)}, found {meta.digest}); "
                "go on with the plan it began with, or choose a new folder",
                str(folder),
            )
        if registration is not None and registration["digest"] != (meta.registration or {}).get("digest"):
            raise ToolError(
                "the run began under another registration, or none; go on under that one, or begin a new run",
                str(folder),
            )
    else:
        stamp = f"{client}-{os.getpid()}-{time.time_ns():x}"
        about = {"host": client, "python": sys.version.split()[0], "esimd_soak": __version__}
        meta = Meta(VERSION, stamp, plain(plan), digest(plan), about, registration)
        write_whole(folder / "meta.json", msgspec.json.format(msgspec.json.encode(meta), indent=2))
    taken = len(list(folder.glob(f"generations-{client}-*.jsonl")))
    return RunStore(folder, meta, lock, f"{client}-{taken:04d}")


def read_meta(folder: Path) -> Meta:
    """ToolError for a folder that is no run, or one of a newer format."""
    path = folder / "meta.json"
    try:
        meta = msgspec.json.decode(path.read_bytes(), type=Meta)
    except OSError:
        raise ToolError("expected a run (a folder with meta.json), found none", str(folder)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError(f"expected the description of a run: {error}", str(path)) from None
    if meta.version not in READABLE:
        raise ToolError(f"expected format {VERSION}, found {meta.version}; use the version that wrote it", str(path))
    return meta


def segments(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}-*.jsonl"))


def read(folder: Path, kind: str, type_: type[T]) -> Iterator[T]:
    """The records of a kind, segment after segment. `type_` may name fewer fields than were written.

    A last line without its end was torn by a kill and is left out; a broken line before it is a ToolError.
    """
    decode = msgspec.json.Decoder(type_).decode
    for path in segments(folder, kind):
        with path.open("rb", buffering=2**20) as file:
            for number, line in enumerate(file, 1):
                if line[-1:] != b"\n":
                    break
                try:
                    yield decode(line)
                except msgspec.DecodeError as error:
                    raise ToolError(f"line {number} is not a record: {error}", str(path)) from None


def write_whole(path: Path, data: bytes) -> None:
    """A file is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
