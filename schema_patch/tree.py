"""Source trees on disk: reads them for patch.py, writes its plans, and keeps the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from . import files, journal, patch
from .model import ToolError
from .patch import FilePlan, Plan, Unit
from .table import Table

Progress = Callable[[str], None]


def read(paths: Iterable[str], table: Table, progress: Progress = lambda _: None) -> tuple[list[Unit], list[ToolError]]:
    """Every C++ file at these paths, examined, and what could not be read. A file with two names is read once."""
    units: list[Unit] = []
    errors: list[ToolError] = []
    seen: set[Path] = set()
    for root in paths:
        try:
            for path in files.find(root):
                progress(path)
                try:
                    file = files.read(path)
                except ToolError as error:
                    errors.append(error)
                    continue
                if file.real not in seen:
                    seen.add(file.real)
                    units.append(patch.examine(file, table))
        except ToolError as error:
            errors.append(error)
    return units, errors


def write(plan: Plan, root: str, done: list[FilePlan]) -> list[ToolError]:
    """Writes the files of a plan, each whole, and notes each in the journal of `root` first.

    `done` grows as files are written, so that an interrupted run can say how far it came.
    """
    errors: list[ToolError] = []
    try:
        book = journal.Journal(root)
    except ToolError as error:
        return [error]
    for planned in plan.files:
        try:
            book.record(planned.file, planned.new, planned.edits)
        except ToolError as error:
            return [*errors, ToolError(f"no journal, so nothing more is written: {error.message}", error.where)]
        try:
            files.replace(planned.file, planned.new)
            done.append(planned)
        except ToolError as error:
            errors.append(error)
            book.forget_last()
    return errors


def revert(root: str) -> tuple[list[str], list[ToolError]]:
    """Takes back what the journal of a tree holds. Raises ToolError where there is no journal."""
    book = journal.Journal(root)
    if not book.entries:
        raise ToolError(
            f"no journal here ({journal.NAME}): nothing was patched with this path, or all is reverted", root
        )
    return book.revert()
