"""Installed libraries on disk: which paths hold them, and the plans for what lies there and for its RECORD.

What is written, journalled and taken back is so by source/tree.py, as for sources.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import records
from schema_patch.model import Edit, ToolError
from schema_patch.schemas.selection import Selection
from schema_patch.schemas.table import Table
from schema_patch.source.patch import FilePlan, TreePlan
from schema_patch.text import edits, files, journal
from schema_patch.text.files import SourceFile
from schema_patch.verify.gather import gather

from . import plan, proof
from .plan import Make

Progress = Callable[[str], None]
Edited = tuple[SourceFile, bytes]  # a library and what it is to hold


@dataclass
class InstalledPlan(TreePlan):
    """New bytes for installed files. `facts`: what every library that was read says, once they are written."""

    facts: list[ElfFacts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_all(
    root: str, table: Table, ops: Selection, make: Make, *, loads: bool = False, progress: Progress = lambda _: None
) -> InstalledPlan:
    """Plans the change of the libraries at a path, each with its row in RECORD."""
    found = gather([root], spaces=table.all_namespaces, progress=progress)
    result = InstalledPlan(errors=list(found.errors))
    rows: list[Edited] = []
    for facts in found.judged:
        try:
            planned = _library(facts, root, table, ops, make) if facts.schemas else None
            if planned and planned.edits:
                result.files.append(file_plan(planned, loads=loads))
            rows += [(planned.file, result.files[-1].new if planned.edits else planned.file.data)] if planned else []
            result.errors += planned.errors if planned else []
            result.facts.append(planned.expected if planned else facts)
        except ToolError as error:
            result.errors.append(error)
            result.facts.append(facts)
    result.files += _records(rows, root)
    result.notes += _other_names(result.files)
    return result


def _library(facts: ElfFacts, root: str, table: Table, ops: Selection, make: Make) -> plan.LibraryPlan | None:
    """The plan for a library with operators of the table; without edits where all is well."""
    if not any(table.effect(found.schema, found.namespace or None) for found in facts.schemas):
        return None
    file = files.load(facts.path)
    if not plan.wanted(facts, table, ops, make):
        return plan.LibraryPlan(file, facts)
    if os.path.isdir(root) and not file.real.is_relative_to(os.path.realpath(root)):
        raise ToolError("the symbolic link leads out of the tree: name its file to have it changed", facts.path)
    proof.refuse_signed(file)
    return plan.library(file, facts, table, ops, make)


def file_plan(planned: plan.LibraryPlan, *, loads: bool) -> FilePlan:
    """A library's plan as one to be written or shown like any file's."""
    file, made = planned.file, planned.edits
    prove = partial(proof.prove, file=file, edits=made, expected=planned.expected, loads=loads)
    return FilePlan(file, edits.apply(file.data, made), made, planned.changes, prove=prove)


def _records(rows: Iterable[Edited], root: str) -> list[FilePlan]:
    """The lists that state the hashes of these libraries, with the new ones.

    A list that states the hash from before an earlier run was left behind when that was killed.
    """
    made: dict[Path, list[Edit]] = {}
    for file, new in rows:
        row = records.of(file.real)
        before = [file.data, *filter(None, [journal.original(root, file)])] if row else []
        edit = next((edit for old in before if row and (edit := records.renewed(row, old, new))), None)
        if row and edit and edit.new != row.stated.encode():
            made.setdefault(row.record, []).append(edit)
    lists = ((files.load(str(record)), found) for record, found in made.items())
    return [FilePlan(file, edits.apply(file.data, found), tuple(found)) for file, found in lists]


def _other_names(planned: Iterable[FilePlan]) -> Iterator[str]:
    """Hard links from elsewhere: they keep the old bytes, as those of an installer's cache should."""
    names = Counter((os.stat(one.file.real).st_dev, os.stat(one.file.real).st_ino) for one in planned)
    for one in planned:
        status = os.stat(one.file.real)
        left = status.st_nlink - names[status.st_dev, status.st_ino]
        if one.prove and left > 0:
            yield f"{one.file.path}: other names of this file, elsewhere, keep the old bytes: {left}"
