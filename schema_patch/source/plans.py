"""New bytes for files, carried out and taken back: each file whole, and noted in the journal first.

Knows neither how the bytes come about nor what the files hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from schema_patch.model import Edit, Finding, Location, ToolError
from schema_patch.schemas.rules import Judgement
from schema_patch.text import files, journal
from schema_patch.text.files import Prove, SourceFile


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one operator's schema."""

    op: str
    location: Location
    before: str
    after: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class FilePlan:
    """New bytes for one file and how they come about. `prove`: what holds them against what was meant, at a path."""

    file: SourceFile
    new: bytes
    edits: tuple[Edit, ...]
    changes: tuple[Change, ...] = ()
    answered: tuple[Finding, ...] = ()  # findings in Python that the new bytes answer
    prove: Prove | None = None


@dataclass
class TreePlan:
    """New bytes for the files of a tree; `errors` says what cannot be changed, and why."""

    files: list[FilePlan] = field(default_factory=list)
    errors: list[ToolError] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)  # in Python, to be put right by hand


def write(
    plan: TreePlan, root: str, done: list[FilePlan], settle: Callable[[journal.Journal], None] | None = None
) -> list[ToolError]:
    """Writes the files of a plan, each whole, and notes each in the journal of `root` first. `settle` is called last.

    `done` grows as files are written, so that an interrupted run can say how far it came.
    """
    errors: list[ToolError] = []
    noted = False
    try:
        with journal.Journal(root) as book:
            for planned in plan.files:
                files.sweep(planned.file.real)
            if plan.files:
                book.record((planned.file, planned.new, planned.edits) for planned in plan.files)
            noted = True
            errors += _replace(plan.files, done)
            book.forget([planned.file for planned in plan.files if planned not in done])
            if settle:
                settle(book)
    except ToolError as error:
        errors.append(error if noted else ToolError(f"no journal, so nothing is written: {error.message}", error.where))
    return errors


def _replace(planned_files: Iterable[FilePlan], done: list[FilePlan]) -> list[ToolError]:
    errors: list[ToolError] = []
    replacing = files.Replacing()
    for planned in planned_files:
        try:
            replacing.replace(planned.file, planned.new, planned.prove)
            done.append(planned)
        except ToolError as error:  # the next file is done all the same
            errors.append(error)
    return errors


def revert(root: str, settle: Callable[[journal.Journal], None] | None = None) -> tuple[list[str], list[ToolError]]:
    """Takes back what the journal of a tree holds for this path. Raises ToolError where there is no journal."""
    if not os.path.exists(root):
        raise ToolError("no such file or directory", root)
    with journal.Journal(root) as book:
        if not book.entries:
            raise ToolError(f"no journal here ({journal.NAME}): nothing was patched, or all is reverted", root)
        return book.revert(root, settle)
