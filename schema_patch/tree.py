"""Source trees on disk: reads them for patch.py, writes its plans, and keeps the journal."""

from __future__ import annotations

import os
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
    try:
        with journal.Journal(root) as book:
            book.record((planned.file, planned.new, planned.edits) for planned in plan.files)
            errors = _replace(plan.files, done)
            book.forget([planned.file for planned in plan.files if planned not in done])
            return errors
    except ToolError as error:
        if done:
            raise
        return [ToolError(f"no journal, so nothing is written: {error.message}", error.where)]


def _replace(planned_files: Iterable[FilePlan], done: list[FilePlan]) -> list[ToolError]:
    errors: list[ToolError] = []
    for planned in planned_files:
        try:
            files.replace(planned.file, planned.new)
            done.append(planned)
        except ToolError as error:  # noqa: PERF203  the next file is done all the same
            errors.append(error)
    return errors


def revert(root: str) -> tuple[list[str], list[ToolError]]:
    """Takes back what the journal of a tree holds for this path. Raises ToolError where there is no journal."""
    if not os.path.exists(root):
        raise ToolError("no such file or directory", root)
    with journal.Journal(root) as book:
        if not book.entries:
            raise ToolError(f"no journal here ({journal.NAME}): nothing was patched, or all is reverted", root)
        return book.revert(root)
