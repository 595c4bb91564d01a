"""A source tree read for inference: scans and registrations of every file, over several processes, cached by content.

Touches the disk: reads sources, and keeps what it read in the user's cache folder. Knows no flow.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import schema_patch
from schema_patch.cpp import registrations
from schema_patch.cpp.registered import Source
from schema_patch.model import ToolError

from .scan import FileIndex, scan

LARGEST = 64_000_000  # bytes of a file; what is larger is no source that a compiler takes
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file: what it defines and what it registers."""

    index: FileIndex
    source: Source | None


@dataclass
class Tree:
    """Every C++ file of a run."""

    files: list[ReadFile] = field(default_factory=list)
    digest: str = ""
    errors: list[ToolError] = field(default_factory=list)  # of files that could not be read, though they may register


def processes() -> int:
    if not hasattr(os, "fork"):  # a process that starts anew would have to read everything again
        return 1
    return max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


@contextmanager
def without_collector() -> Iterator[None]:
    """Nothing that is read here lives in cycles, and a collector would look at all of it again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def version() -> str:
    """Changes with any line of the package and its tables: what an older version concluded is not believed."""
    digest = hashlib.blake2b(digest_size=12)
    package = Path(schema_patch.__file__).parent
    for file in sorted(package.rglob("*")):
        if file.suffix in (".py", ".toml"):
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest() + f"-{sys.version_info[0]}.{sys.version_info[1]}"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "schema-kit" / "audit"


class Store:
    """What was read before, by content; one file a tree. Silent where it cannot be written."""

    def __init__(self, name: str, on: bool) -> None:
        tag = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        self.path = cache_folder() / f"{tag}-{version()}.pickle" if on else None
        self.known: dict[str, object] = {}
        if self.path and self.path.is_file():
            # Only this user's own folder is read; a file that is cut is a file that is not there.
            with suppress(OSError, EOFError, pickle.UnpicklingError, AttributeError):
                self.known = pickle.loads(self.path.read_bytes())

    def remember(self, key: str, value: object) -> None:
        """Notes a result, in place of those of other contents."""
        kept = {name: held for name, held in self.known.items() if not name.startswith("result")}
        self.save({**kept, key: value})

    def save(self, known: dict[str, object]) -> None:
        """Writes what is known now, whole or not at all."""
        if self.path is None or known.keys() == self.known.keys():
            return
        self.known = known
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_bytes(pickle.dumps(known, protocol=pickle.HIGHEST_PROTOCOL))
            os.replace(temporary, self.path)
            tag = self.path.name.partition("-")[0]
            for old in self.path.parent.glob(f"{tag}-*.pickle"):
                if old != self.path:
                    old.unlink()


def read_file(path: str) -> tuple[str, ReadFile | None]:
    """One file and its digest; nothing for one that is binary or too large."""
    data = Path(path).read_bytes()
    if b"\0" in data or len(data) > LARGEST:
        return "", None
    return digest_of(path, data), _read(path, data)


def digest_of(path: str, data: bytes) -> str:
    return hashlib.blake2b(path.encode("utf-8", "surrogateescape") + b"\0" + data, digest_size=16).hexdigest()


def _read(path: str, data: bytes) -> ReadFile:
    return ReadFile(scan(data, path), registrations.read(data, path) if registrations.may_register(data) else None)


def read(paths: Sequence[str], store: Store, step: Step = lambda _: None) -> Tree:
    """Every file, read or remembered; none of them where no file registers anything."""
    known: dict[str, object] = {}
    order: list[str] = []
    todo: list[str] = []
    any_registers = False
    errors: list[ToolError] = []
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            errors.append(ToolError(f"cannot read: {error.strerror}", path))
            continue
        if b"\0" in data or len(data) > LARGEST:
            if registrations.may_register(data):
                what = f"{len(data)} bytes" if len(data) > LARGEST else "a binary file"
                errors.append(ToolError(f"expected C++ of at most {LARGEST} bytes, found {what}: not read", path))
            continue
        digest = digest_of(path, data)
        order.append(digest)
        any_registers = any_registers or registrations.may_register(data)
        if digest in store.known:
            known[digest] = store.known[digest]
            step(path)
        else:
            todo.append(path)
    for digest, file in pooled(read_file, todo if any_registers else ()):
        if file is not None:
            known[digest] = file
            step(file.index.path)
    files = [known[digest] for digest in order if digest in known]
    whole = hashlib.blake2b("\n".join(order).encode(), digest_size=16).hexdigest()
    store.save({**known, **{k: v for k, v in store.known.items() if k.startswith("result")}})
    return Tree([f for f in files if isinstance(f, ReadFile)], whole, errors)


def pooled(
    work: Callable[[str], tuple[str, ReadFile | None]], todo: Sequence[str]
) -> Iterator[tuple[str, ReadFile | None]]:
    """The results of the work, in any order; in this process where there is little to do."""
    if len(todo) < 24 or processes() == 1:
        yield from map(work, todo)
        return
    # Nothing here lives in cycles, and a collector would copy the pages that the processes share.
    with multiprocessing.get_context("fork").Pool(processes(), gc.disable) as pool:
        yield from pool.imap_unordered(work, todo, chunksize=8)
