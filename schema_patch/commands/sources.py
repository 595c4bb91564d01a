"""apply and strip on source trees: read, plan, write, read again, judge. One journal a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from schema_patch.model import Report

from . import audit
from .changes import Changes
from .console import known_ops, progress

if TYPE_CHECKING:
    from schema_patch.audit.judge import InferredTable
    from schema_patch.schemas.selection import Selection
    from schema_patch.schemas.table import Table
    from schema_patch.source.patch import SourcePlan, Unit

Make = Callable[..., "SourcePlan"]


def rewrite(
    paths: tuple[str, ...],
    known: Table,
    ops: tuple[str, ...],
    diff: bool,
    form: str,
    make: Make,
    *,
    judge: bool,
    python: bool = False,
    inferred: InferredTable | None = None,
) -> int:
    """Carries out what `make` plans for the operators asked for; the exit code.

    python: callers and fakes follow operators that return nothing now. inferred: what operators in no table do.
    """
    if diff and form != "text":
        raise click.UsageError("--diff shows a diff: leave --format out")
    known = inferred or known
    changes = Changes(diff, form)
    work = _Trees(changes, paths, known, known_ops(ops, known), inferred)
    work.registrations(make)
    return changes.end(work.judged(python) if judge else None)


@dataclass
class _Trees:
    """What is asked for, and what the files register before and after the change."""

    changes: Changes
    paths: tuple[str, ...]
    known: Table
    wanted: Selection
    inferred: InferredTable | None
    before: list[Unit] = field(default_factory=list)
    after: list[Unit] = field(default_factory=list)

    def registrations(self, make: Make) -> None:
        """In C++, and where something was inferred, in Python too."""
        from schema_patch.source import tree

        for path in self.paths:
            with progress("reading") as step:
                units, errors = tree.read([path], self.known, step)
            plan = make(units, self.known, self.wanted)
            self.before += units
            self.after += plan.after
            self.changes.troubles += errors
            self.changes.carry_out(plan, path)
            if self.inferred:
                self.changes.carry_out(audit.plan_python(path, self.inferred, self.wanted), path)

    def judged(self, python: bool) -> Report:
        """The files read again, after callers and fakes in Python have followed."""
        from schema_patch.source import patch, tree

        with progress("checking") as step:
            units, errors = tree.read(self.paths, self.known, step)
            gone = patch.gone(self.after if self.changes.diff else units, self.wanted, self.before) if python else []
            for path in self.paths:
                self.changes.carry_out(tree.plan_python(path, gone, step), path)
            findings, more = tree.read_python(self.paths, patch.gone(units, self.wanted, self.before), step)
            rows = audit.python_rows(self.paths, self.inferred, self.wanted) if self.inferred else []
        told = {str(error) for error in self.changes.troubles}
        self.changes.troubles += [error for error in (*errors, *more) if str(error) not in told]
        findings += [row.finding for row in rows if row.finding]
        left = self.inferred.left if self.inferred else ()
        findings += [finding for finding in left if self.wanted.takes(finding.op)]
        return patch.report(units, self.wanted, self.changes.troubles, findings, [row.checked for row in rows])
