"""Installed libraries on disk: which paths hold them, and the plans for what lies there and for its RECORD.

What is written, journalled and taken back is so by source/tree.py, as for sources.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from schema_patch.elf.reader import ElfFacts
from schema_patch.installed import records
from schema_patch.model import Edit, ToolError
from schema_patch.schemas.selection import Selection
from schema_patch.schemas.table import Table
from schema_patch.source.patch import FilePlan, TreePlan
from schema_patch.text import edits, files
from schema_patch.text.files import SourceFile
from schema_patch.verify.gather import gather

from . import plan, proof
from .plan import Make

Progress = Callable[[str], None]


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
    for facts in found.judged:
        try:
            planned = _library(facts, root, table, ops, make, loads, result)
        except ToolError as error:
            result.errors.append(error)
            planned = None
        result.facts.append(planned.expected if planned else facts)
    return result


def _library(
    facts: ElfFacts, root: str, table: Table, ops: Selection, make: Make, loads: bool, result: InstalledPlan
) -> plan.LibraryPlan | None:
    if not plan.wanted(facts, table, ops, make):
        return None
    file = files.load(facts.path)
    if os.path.isdir(root) and not file.real.is_relative_to(os.path.realpath(root)):
        raise ToolError("the symbolic link leads out of the tree: name its file to have it changed", facts.path)
    planned = library(file, facts, table, ops, make)
    result.errors += planned.errors
    if not planned.edits:
        return planned
    new = edits.apply(file.data, planned.edits)
    prove = partial(proof.prove, meant=new, expected=planned.expected, edits=planned.edits, loads=loads)
    result.files.append(FilePlan(file, new, planned.edits, planned.changes, prove=prove))
    _record(file, new, result)
    return planned


def library(file: SourceFile, facts: ElfFacts, table: Table, ops: Selection, make: Make) -> plan.LibraryPlan:
    """Plans one library. Raises ToolError where none of its bytes may change."""
    proof.refuse_signed(file)
    return plan.library(file, facts, table, ops, make)


def _record(file: SourceFile, new: bytes, result: InstalledPlan) -> None:
    """Plans the row of RECORD that states a library's hash, beside the rows of others in the same list."""
    row = records.of(file.real)
    edit = records.renewed(row, file.data, new) if row else None
    if row is None or edit is None:
        return
    before = next((planned for planned in result.files if planned.file.real == row.record), None)
    made: tuple[Edit, ...] = (*(before.edits if before else ()), edit)
    record = before.file if before else files.load(str(row.record))
    if before:
        result.files.remove(before)
    result.files.append(FilePlan(record, edits.apply(record.data, made), made))
