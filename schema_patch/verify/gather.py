"""Paths -> the libraries in them, read. Finds with packages.py and archives.py, reads with elf.py.

Knows the order of the work, and that a library should be what its distribution's RECORD says. What environment.py finds
of each input is kept with it. Code:
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, cast

from schema_patch.elf import reader
from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import packages, policy, records
from schema_patch.installed.kind import is_archive
from schema_patch.installed.packages import Contents, Library, Placed, Read
from schema_patch.model import Finding, Location, Severity, ToolError
from schema_patch.text import files

from . import environment, judge

Progress = Callable[[str], None]
Expect = Callable[[int], None]
RESIGNED = "expected the list of files whose hash RECORD.jws states, found another: changed since it was signed"
STDIN, NAME_OF_STDIN = "-", "standard input"


@dataclass(slots=True)
class Gathered:
    """What paths hold, read. `libraries` and their `keys` are in step."""

    libraries: list[Placed] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    errors: list[ToolError] = field(default_factory=list)
    skipped: dict[tuple[str, str], int] = field(default_factory=dict)
    unfollowed: list[tuple[str, str]] = field(default_factory=list)
    sources: dict[str, bytes] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    imports: dict[str, judge.Import] = field(default_factory=dict)

    @property
    def judged(self) -> list[ElfFacts]:
        return [library.facts for library in self.libraries if library.judged]

    def by_key(self) -> dict[str, ElfFacts]:
        """The judged libraries by their path inside what was asked for."""
        return {key: p.facts for key, p in zip(self.keys, self.libraries, strict=True) if p.judged}

    def place(self, library: Library) -> None:
        """Notes how a library that was read is called inside its input, and how Python comes to it."""
        self.keys.append(library.key)
        if not library.wheel:
            self.imports[library.path] = judge.Import.of(library.key, len(self.inputs), library.root)

    def skip(self, what: str, why: str) -> None:
        self.skipped[what, why] = self.skipped.get((what, why), 0) + 1


@dataclass(frozen=True, slots=True)
class _Work:
    """How the reading is done, and who hears of it."""

    read: Read
    include_all: bool
    progress: Progress
    expect: Expect
    spaces: tuple[bytes, ...]


def gather(
    paths: Iterable[str],
    *,
    include_all: bool = False,
    deep: bool = False,
    spaces: Iterable[str] = (),
    read: Read | None = None,
    progress: Progress | None = None,
    expect: Expect | None = None,
) -> Gathered:
    """Reads what the paths hold. `deep`: exported symbols and a hash of each kernel too.

    `spaces`: a library of the platform that names one of these is read like any other. `read`: reads one library.
    """
    gathered = Gathered()
    heard = (progress or (lambda _: None), expect or (lambda _: None))
    work = _Work(
        partial(_twice, read=read or partial(reader.read, deep=deep), spaces=frozenset(spaces)),
        include_all,
        *heard,
        tuple(space.encode() for space in spaces),
    )
    for path in paths:
        gathered.inputs.append(path)
        _gather(path, gathered, work)
    return gathered


def _twice(path: str, where: str, *, read: Read, spaces: frozenset[str]) -> ElfFacts:
    """Reads a library, and a second time by lief where a verdict on its operators will be given."""
    facts = read(path, where)
    told = {found.namespace for found in facts.schemas}
    told |= {found.namespace for found in facts.named} | {found.namespace for found in facts.unread}
    if told.isdisjoint({"", *spaces}):
        return facts
    from schema_patch.elf import second

    return replace(facts, differences=tuple(second.differences(path, where)), read_once=second.too_large(path))


def _gather(path: str, gathered: Gathered, work: _Work) -> None:
    try:
        _read(_find(path, gathered, work), gathered, work)
    except ToolError as error:
        gathered.errors.append(error)


def _find(path: str, gathered: Gathered, work: _Work) -> Contents:
    if path == STDIN:
        return _standard_input(gathered, work)
    if os.path.isfile(path):
        with _open(path) as stream:
            if is_archive(stream.peek(512)[:512]):  # type: ignore[attr-defined]
                return _unarchived(stream, path, work)
    return packages.find(path)


def _unarchived(stream: IO[bytes], name: str, work: _Work) -> Contents:
    from schema_patch.installed import archives  # which takes as long to import as a small library to read

    return archives.find(stream, name, work.read, work.progress)


def _open(path: str) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", path) from error


def _read(found: Contents, gathered: Gathered, work: _Work) -> None:
    gathered.errors += found.errors
    gathered.unfollowed += found.unfollowed
    for what, why in (*found.skipped, *found.unfollowed):
        gathered.skip(what, why)
    gathered.findings += [Finding("SP213", Location(path), "", RESIGNED, Severity.WARNING) for path in found.resigned]
    placed: list[Placed] = []
    known = {library.facts.path for library in gathered.libraries}
    work.expect(len(found.libraries))
    for library in found.libraries:
        owner = library.owner
        asked_for = library.named or work.include_all
        why_not = policy.load().passes_over(owner.name) if owner and not asked_for else None
        if library.path in known:
            continue
        known.add(library.path)
        try:
            if library.path in found.facts:
                facts = found.facts[library.path]
            else:
                work.progress(library.path)
                with packages.local(library) as file:
                    if why_not and reader.names_any(file, work.spaces):
                        why_not = None  # it may define an operator that is judged, whoever ships it
                    if why_not:
                        facts = reader.read(file, library.path, linked=True)
                    else:
                        facts = work.read(file, library.path)
                        if library.hidden and not facts.registers:
                            continue
                        gathered.findings += _changed(library, facts, file)
        except reader.ForeignElf as error:  # packages bring helpers for other machines; torch cannot load those
            if library.named and not library.hidden:
                gathered.errors.append(error)
            elif not why_not and not library.hidden:
                gathered.skip(library.path, error.message)
        except ToolError as error:
            if not why_not and not library.hidden:
                gathered.errors.append(error)
        else:
            if owner and why_not:
                gathered.skip(str(owner), why_not)
            placed.append(Placed(facts, str(owner) if owner else "", judged=not why_not))
            gathered.place(library)
    gathered.findings += environment.check(
        placed, found.names, found.scripts, installed=found.installed, complete=found.complete
    )
    gathered.libraries += placed
    gathered.sources |= found.sources


def _standard_input(gathered: Gathered, work: _Work) -> Contents:
    """A tar archive is read as it comes. A wheel or a library must be a file: that one is copied."""
    stream = cast(IO[bytes], sys.stdin.buffer)
    if is_archive(stream.peek(512)[:512]):  # type: ignore[attr-defined]
        return _unarchived(stream, NAME_OF_STDIN, work)
    with files.scratch() as copy:
        with open(copy, "wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        found = packages.find(copy)
        found.libraries = [
            replace(library, path=library.path.replace(copy, NAME_OF_STDIN, 1), file=copy)
            for library in found.libraries
        ]
        _read(found, gathered, work)
    return Contents()


def _changed(library: Library, facts: ElfFacts, file: str) -> list[Finding]:
    """Holds a library whose operators are judged against its RECORD."""
    stated = library.digest.rstrip("=")
    if not stated.startswith("sha256=") or not facts.schemas:
        return []
    with open(file, "rb") as content:
        if records.of_stream(content) == stated:
            return []
    message = (
        f"expected the content that the RECORD of {library.owner} states, found another: rebuilt in place, or damaged"
    )
    return [Finding("SP213", Location(library.path), "", message, Severity.WARNING)]
