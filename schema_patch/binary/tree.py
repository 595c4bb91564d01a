"""Installed libraries on disk: the plans for what lies at a path, carried out and taken back; RECORD follows.

What is written, journalled and taken back is so by source/plans.py, as for sources.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from schema_patch.elf import placed
from schema_patch.elf.placed import PlacedText
from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import records
from schema_patch.model import ToolError
from schema_patch.schemas.selection import Selection
from schema_patch.schemas.table import Table
from schema_patch.source import plans
from schema_patch.source.plans import FilePlan, TreePlan
from schema_patch.text import edits, files, journal
from schema_patch.verify import judge
from schema_patch.verify.gather import gather

from . import plan, proof
from .plan import Make

Progress = Callable[[str], None]


@dataclass
class InstalledPlan(TreePlan):
    """New bytes for libraries. `facts`: what all that were read say; `expected`: what each will that changes, by its
    path; `libraries`: those with operators of the table, changed or not; `notes`: what the user should hear."""

    facts: list[ElfFacts] = field(default_factory=list)
    expected: dict[str, ElfFacts] = field(default_factory=dict)
    libraries: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, planned: plan.LibraryPlan, *, loads: bool) -> None:
        """Takes a library's plan in, as one to be written or shown like any file's."""
        self.errors += planned.errors
        if planned.edits:
            file, made = planned.file, planned.edits
            prove = partial(proof.prove, file=file, edits=made, expected=planned.expected, loads=loads)
            self.files.append(FilePlan(file, edits.apply(file.data, made), made, planned.changes, prove=prove))
            self.expected[file.path] = planned.expected

    def said(self, done: Iterable[FilePlan]) -> list[ElfFacts]:
        """What all that were read say once these are written."""
        new = {one.file.path for one in done}
        return [self.expected.get(facts.path, facts) if facts.path in new else facts for facts in self.facts]


def plan_all(
    root: str, table: Table, ops: Selection, make: Make, *, loads: bool = False, progress: Progress = lambda _: None
) -> InstalledPlan:
    """Plans the change of the libraries at a path, each with its row in RECORD."""
    rows: dict[str, list[PlacedText]] = {}

    def read(path: str, where: str) -> ElfFacts:
        facts, rows[where] = placed.read(path, where)
        return facts

    found = gather([root], spaces=table.all_namespaces, read=read, progress=progress)
    result = InstalledPlan(errors=list(found.errors), facts=found.judged)
    for facts in found.judged:
        try:
            planned = _library(facts, rows[facts.path], root, table, ops, make) if facts.schemas else None
        except ToolError as error:
            result.errors.append(error)
            continue
        if planned:
            result.add(planned, loads=loads)
            result.libraries.append(planned.file.real)
            result.notes += [f"{facts.path}: {judge.ONCE}"] if facts.read_once and planned.edits else []
    result.notes += _other_names(result.files)
    return result


def _library(
    facts: ElfFacts, rows: Sequence[PlacedText], root: str, table: Table, ops: Selection, make: Make
) -> plan.LibraryPlan | None:
    """The plan for a library with operators of the table; without edits where all is well."""
    if not any(table.effect(found.schema, found.namespace or None) for found in facts.schemas):
        return None
    file = files.load(facts.path)
    if not plan.wanted(facts, table, ops, make):
        return plan.LibraryPlan(file, facts)
    if os.path.isdir(root) and not file.real.is_relative_to(os.path.realpath(root)):
        raise ToolError("the symbolic link leads out of the tree: name its file to have it changed", facts.path)
    proof.refuse_signed(file)
    records.refuse_unfollowed(file.real, root, facts.path)
    return plan.library(file, facts, rows, table, ops, make)


def write(planned: InstalledPlan, root: str, done: list[FilePlan]) -> list[ToolError]:
    """Writes the libraries of a plan as sources are, and what RECORD states of them; also what a killed run left."""
    return plans.write(planned, root, done, lambda book: _settle(book, root, planned.libraries))


def revert(root: str) -> tuple[list[str], list[ToolError]]:
    """Takes back what the journal holds for this path, and what RECORD states of it. Raises ToolError."""

    def settle(book: journal.Journal) -> None:
        _settle(book, root, {(book.root / entry.path).resolve() for entry in book.entries})

    return plans.revert(root, settle)


def _settle(book: journal.Journal, root: str, libraries: Iterable[Path]) -> None:
    for library in sorted(libraries):
        earlier = book.digests(library)
        if earlier and library.is_file():
            records.follow(library, root, earlier)


def _other_names(planned: Iterable[FilePlan]) -> Iterator[str]:
    """Hard links from elsewhere: they keep the old bytes, as those of an installer's cache should."""
    names = Counter((os.stat(one.file.real).st_dev, os.stat(one.file.real).st_ino) for one in planned)
    for one in planned:
        status = os.stat(one.file.real)
        left = status.st_nlink - names[status.st_dev, status.st_ino]
        if one.prove and left > 0:
            yield f"{one.file.path}: other names of this file, elsewhere, keep the old bytes: {left}"
