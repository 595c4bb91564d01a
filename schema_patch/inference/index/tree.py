"""A source tree read for inference: scans and registrations of every file, over several processes. Knows no flow."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from schema_patch.cpp import registrations, shared
from schema_patch.cpp.registered import Source
from schema_patch.model import ToolError

from .scan import may_bind, scan
from .store import ReadFile, Store

LARGEST = 64_000_000  # bytes of a file; what is larger is no source that a compiler takes
Step = Callable[[str], None]


@dataclass
class Tree:
    """Every C++ file of a run."""

    files: list[ReadFile] = field(default_factory=list)
    errors: list[ToolError] = field(default_factory=list)  # of files that could not be read, though they may register

    @cached_property
    def sources(self) -> dict[str, Source]:
        """What each file registers, by its path, with constants that stand in other files."""
        found = {file.index.path: file.source for file in self.files if file.source}
        paths = [file.index.path for file in self.files]
        for path, elsewhere in shared.find(found, paths, lambda path: Path(path).read_bytes()).items():
            found[path] = registrations.read(Path(path).read_bytes(), path, elsewhere)
        return found


def processes() -> int:
    if not hasattr(os, "fork"):  # a process that starts anew would have to read everything again
        return 1
    return max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def read_file(path: str) -> ReadFile | None:
    """One file; nothing for one that is binary or too large."""
    data = Path(path).read_bytes()
    if b"\0" in data or len(data) > LARGEST:
        return None
    source = registrations.read(data, path) if registrations.may_register(data) else None
    return ReadFile(digest_of(data), scan(data, path), source)


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read(paths: Sequence[str], store: Store, step: Step = lambda _: None, *, called: bool = False) -> Tree:
    """Every file, read or remembered; none of them where no file registers anything. `called`: Python has operators,
    which may call functions that C++ hands to it."""
    known: dict[str, ReadFile] = {}
    todo: list[str] = []
    any_registers = False
    errors: list[ToolError] = []
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            errors.append(ToolError(f"cannot read: {error.strerror}", path))
            continue
        kept = store.kept.files.get(path)
        if kept is not None and kept.digest == digest_of(data):
            known[path] = kept
            any_registers = any_registers or kept.source is not None or (called and bool(kept.index.bindings))
            step(path)
            continue
        registers = registrations.may_register(data)
        if b"\0" in data or len(data) > LARGEST:
            if registers:
                what = f"{len(data)} bytes" if len(data) > LARGEST else "a binary file"
                errors.append(ToolError(f"expected C++ of at most {LARGEST} bytes, found {what}: not read", path))
            continue
        any_registers = any_registers or registers or (called and may_bind(data))
        todo.append(path)
    for file in pooled(read_file, todo if any_registers else ()):
        if file is not None:
            known[file.index.path] = file
            step(file.index.path)
    return Tree([known[path] for path in paths if path in known], errors)


def pooled(work: Callable[[str], ReadFile | None], todo: Sequence[str]) -> Iterator[ReadFile | None]:
    """The results of the work, in any order; in this process where there is little to do."""
    if len(todo) < 24 or processes() == 1:
        yield from map(work, todo)
        return
    # Nothing here lives in cycles, and a collector would copy the pages that the processes share.
    with multiprocessing.get_context("fork").Pool(processes(), gc.disable) as pool:
        yield from pool.imap_unordered(work, todo, chunksize=8)
