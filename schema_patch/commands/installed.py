"""apply and strip on what is installed: argv -> plans -> files or wheels, journal, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schema_patch.model import Report, ToolError
from schema_patch.report.text import one_line

from .changes import Changes
from .console import known_ops, progress

if TYPE_CHECKING:
    from schema_patch.binary.plan import Make
    from schema_patch.binary.tree import InstalledPlan
    from schema_patch.elf.reader import ElfFacts
    from schema_patch.schemas.selection import Selection
    from schema_patch.schemas.table import Table

NO_VOID = (
    "compiled code returns its tensor, and torch refuses a schema that says otherwise; rebuild from source for that"
)


def told_apart(paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths that hold what is installed, and those that hold sources."""
    from schema_patch.installed.kind import is_installed

    built = tuple(path for path in paths if is_installed(path))
    return built, tuple(path for path in paths if path not in built)


def revert(path: str) -> tuple[list[str], list[ToolError]]:
    """The files restored, and why others were not. Raises ToolError where there is no journal."""
    from schema_patch.binary import tree

    return tree.revert(path)


def rewrite(
    paths: Sequence[str],
    known: Table,
    ops: tuple[str, ...],
    changes: Changes,
    load: bool,
    wheel_out: str | None,
    judge: bool,
) -> int:
    """Writes the annotations of the operators asked for, or with `judge` false takes them out; the exit code."""
    from schema_patch.binary import plan

    make = plan.annotated if judge else plan.stripped
    work = _Libraries(changes, known, known_ops(ops, known), make, load, wheel_out)
    for path in paths:
        try:
            work.one(path)
        except ToolError as error:
            changes.troubles.append(error)
    return changes.end(work.report() if judge else None)


@dataclass
class _Libraries:
    """What is asked for, and what the libraries of all paths say, as they are now or will be."""

    changes: Changes
    known: Table
    wanted: Selection
    make: Make
    load: bool
    wheel_out: str | None
    facts: list[ElfFacts] = field(default_factory=list)

    def one(self, path: str) -> None:
        """Plans what a path holds, and writes or shows it. Raises ToolError."""
        from schema_patch.binary import tree, wheel

        if wheel.is_wheel(path):
            self._wheel(path)
            return
        with progress("reading") as step:
            plan = tree.plan_all(path, self.known, self.wanted, self.make, loads=self.load, progress=step)
        self._carry_out(plan, path)

    def _wheel(self, path: str) -> None:
        from schema_patch.binary import wheel

        if not (self.wheel_out or self.changes.diff):
            raise ToolError("a wheel is not changed in place, its hash may be known: say --wheel-out DIR", path)
        if self.load:
            raise ToolError("--load needs what is around a library: install the new wheel, then load that", path)
        with progress("reading") as step:
            plan = wheel.plan_all(path, self.known, self.wanted, self.make, step)
        if self.changes.diff or not self.wheel_out:
            self._carry_out(plan, path)
            return
        self.changes.troubles += plan.errors
        if plan.files:
            click.echo(wheel.write(plan, path, self.wheel_out), err=True)
            self.changes.done += plan.files
        self.facts += plan.said(plan.files)

    def _carry_out(self, plan: InstalledPlan, path: str) -> None:
        from schema_patch.binary import tree

        self.changes.carry_out(plan, path, tree.write)
        self.changes.troubles += _proved(plan) if self.changes.diff else []
        self.facts += plan.said(self.changes.done)
        for note in plan.notes:
            click.echo(one_line(note), err=True)

    def report(self) -> Report:
        """The verdicts on the operators alone: what else a library must be is for verify-schemas."""
        from schema_patch.installed import policy
        from schema_patch.verify import judge

        report = judge.check(self.facts, self.known, sycl=policy.load().sycl.major)
        checked = tuple(row for row in report.checked if self.wanted.takes(row.op))
        findings = tuple(finding for finding in report.findings if finding.op and self.wanted.takes(finding.op))
        names = self.wanted.missing((None, row.op) for row in checked)
        missing = [ToolError(f"{name}: asked for, but in no library here") for name in names]
        told = {str(error) for error in self.changes.troubles}
        errors = [error for error in report.errors if str(error) not in told]
        return Report(checked, findings, (*self.changes.troubles, *errors, *missing))


def _proved(plan: InstalledPlan) -> list[ToolError]:
    """Why plans that are only shown could not be carried out."""
    from schema_patch.text import files

    errors: list[ToolError] = []
    for planned in plan.files:
        if planned.prove:
            with files.scratch(".so") as copy:
                Path(copy).write_bytes(planned.new)
                try:
                    planned.prove(copy)
                except ToolError as error:
                    errors.append(error)
    return errors
