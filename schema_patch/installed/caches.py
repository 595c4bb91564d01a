"""Compile caches on disk: find, judge, purge. Knows where torch, vLLM and Triton keep them; opens no pickle.

A graph that was compiled with an operator's old schema is served after the fix, because no cache key sees a schema
(evidence: two processes, 20 of 20 results wrong in the second). What a cache holds is judged by the names in its bytes.
"""

from __future__ import annotations

import getpass
import math
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from schema_patch.model import Checked, Finding, Location, Severity, ToolError

# What a cache of each kind holds: one of these stands in it, or it is none and is left alone.
MARKS = {
    "Inductor": ("fxgraph", "aotautograd", "triton", "*/c*.py"),
    "vLLM": ("*/rank_*", "*/*/rank_*", "torch_aot_compile", "*/computation_graph.py", "*/vllm_compile_cache.py"),
    "Triton": ("*/*.json", "*/__grp__*"),
}
SMALL = 1 << 26  # bytes of a file that are read at once
HEADERS = (".gch", ".pch")  # compiled headers of torch, most of the bytes of a cache; no graph is in them


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache. Times are seconds since the epoch, of its files; operators as namespace::name."""

    kind: str
    path: Path
    files: int
    size: int
    oldest: float
    newest: float
    operators: tuple[str, ...]
    unreadable: int = 0

    def predates(self, modified: float) -> bool:
        """Whether something in it is older than a binary modified then."""
        return bool(self.files) and self.oldest < modified


def _user() -> str:
    """As torch names the folder: a container may be run by a number that no user has."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):
        return f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"


def places(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Where each kind of cache is by default, with this environment."""
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    user = re.sub(r'[\\/:*?"<>|]', "_", _user())
    inductor = environment.get("TORCHINDUCTOR_CACHE_DIR")
    yield "Inductor", Path(inductor or Path(tempfile.gettempdir()) / f"torchinductor_{user}")
    root = Path(
        environment.get("VLLM_CACHE_ROOT") or Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "vllm"
    )
    yield "vLLM", root / "torch_compile_cache"
    yield "Triton", Path(environment.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")


def find(
    directories: Iterable[str],
    namespaces: Collection[str],
    environment: Mapping[str, str],
    before: float = math.inf,
) -> list[Cache]:
    """The caches in these directories, or in the usual places. Raises ToolError for a directory that is no cache.

    Operators are looked for in files older than `before`.
    """
    given = [Path(directory) for directory in directories]
    found: list[Cache] = []
    for path in given:
        kind = kind_of(path)
        if kind is None:
            raise ToolError(
                "expected a compile cache of Inductor, vLLM or Triton, found none of their folders", str(path)
            )
        found.append(read(kind, path, namespaces, before))
    usual = [] if given else [place for place in places(environment) if _filled(place[1])]
    return found + [read(kind, path, namespaces, before) for kind, path in usual]


def older(caches: Iterable[Cache], rows: Iterable[Checked]) -> list[Finding]:
    """Those of the caches that are older than a library and name an operator of it; `rows`: its operators."""
    names, modified = _libraries(rows)
    return judge(caches, names, modified)


def stale(rows: Iterable[Checked], namespaces: Collection[str], environment: Mapping[str, str]) -> list[Finding]:
    """The same for the caches in the usual places. Reads only files older than a library, none where there is none."""
    names, modified = _libraries(rows)
    return judge(find((), namespaces, environment, max(modified.values())), names, modified) if modified else []


def _libraries(rows: Iterable[Checked]) -> tuple[dict[str, set[str]], dict[str, float]]:
    """The operators of each library that is a file, and when it was written."""
    names: dict[str, set[str]] = {}
    for row in rows:
        names.setdefault(row.location.path, set()).add(row.op)
    modified = {path: os.path.getmtime(path) for path in names if os.path.isfile(path)}
    return {path: names[path] for path in modified}, modified


def kind_of(path: Path) -> str | None:
    """What kind of cache a directory is, by what stands in it."""
    if not path.is_dir():
        raise ToolError("no such directory", str(path))
    return next((kind for kind, marks in MARKS.items() if any(any(path.glob(mark)) for mark in marks)), None)


def _filled(path: Path) -> bool:
    try:
        return any(path.iterdir())
    except OSError:  # not there, or another user's
        return False


def read(kind: str, path: Path, namespaces: Collection[str], before: float = math.inf) -> Cache:
    """Looks through every file of a cache that is older than `before` for operators of these namespaces."""
    words = [name.encode() for name in sorted(namespaces)]
    pattern = re.compile(rb"\b(" + b"|".join(map(re.escape, words)) + rb")(?:::|\.)([A-Za-z_]\w*)")
    files = size = unreadable = 0
    times: list[float] = []
    operators: set[str] = set()
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            try:
                stat = os.lstat(file)
                operators |= _operators(file, stat.st_size, words, pattern) if stat.st_mtime < before else set()
            except OSError:  # caches change under our hands, and may hold another user's files
                unreadable += 1
                continue
            files, size = files + 1, size + stat.st_size
            times.append(stat.st_mtime)
    return Cache(
        kind, path, files, size, min(times, default=0), max(times, default=0), tuple(sorted(operators)), unreadable
    )


def _operators(file: str, size: int, words: Iterable[bytes], pattern: re.Pattern[bytes]) -> set[str]:
    if not size or file.endswith(HEADERS) or os.path.islink(file) or not os.path.isfile(file):
        return set()
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if size < SMALL:  # a search for words in bytes is much faster than one for the pattern
            text = data[:]
            if not any(word in text for word in words):
                return set()
        return {f"{m[1].decode()}::{m[2].decode()}" for m in pattern.finditer(data)}


def judge(
    caches: Iterable[Cache], binaries: Mapping[str, Collection[str]], modified: Mapping[str, float]
) -> list[Finding]:
    """The caches that may bring back graphs from before a binary; `binaries`: path -> operator names in it."""
    findings: list[Finding] = []
    for cache in caches:
        for binary, names in sorted(binaries.items()):
            shared = sorted({op for op in cache.operators if op.partition("::")[2] in names})
            if shared and cache.predates(modified[binary]):
                listed = ", ".join(shared[:3]) + (f" and {len(shared) - 3} more" if len(shared) > 3 else "")
                message = f"this {cache.kind} cache is older than {binary} and names {listed}: purge it first"
                findings.append(Finding("SP301", Location(str(cache.path)), "", message, Severity.WARNING))
    return findings


def purge(cache: Cache) -> None:
    """Deletes what is in a cache, not the directory itself. Raises ToolError where something stays."""
    if kind_of(cache.path) != cache.kind:
        raise ToolError(f"no longer looks like a cache of {cache.kind}: nothing deleted", str(cache.path))
    try:
        for entry in cache.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    except OSError as error:
        raise ToolError(f"cannot delete {error.filename}: {error.strerror}", str(cache.path)) from error
