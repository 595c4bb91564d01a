"""apply and strip on source trees: read, plan, write, read again, judge. One journal a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from schema_patch.model import Report, ToolError, Verdict

from . import audit, changes
from .console import known_ops, progress, show, show_errors

if TYPE_CHECKING:
    from schema_patch.audit.judge import InferredTable
    from schema_patch.schemas.selection import Selection
    from schema_patch.schemas.table import Table
    from schema_patch.source.patch import FilePlan, TreePlan, Unit

Make = Callable[..., "TreePlan"]


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
    work = _Work(paths, known, known_ops(ops, known), diff, inferred)
    if not work.registrations(make):
        return 2
    if not judge:
        work.tell()
        show_errors(work.troubles)
        return 2 if work.troubles else 0
    report = work.judged(python)
    if report is None:
        return 2
    if form == "text":
        work.tell()
    return show(report, form, quiet={Verdict.NEEDS_GUARD}, silent=diff)


@dataclass
class _Work:
    """One run: what is asked for, and what was done so far. A step is False or None where the user interrupted it."""

    paths: tuple[str, ...]
    known: Table
    wanted: Selection
    diff: bool
    inferred: InferredTable | None
    before: list[Unit] = field(default_factory=list)
    after: list[Unit] = field(default_factory=list)
    done: list[FilePlan] = field(default_factory=list)
    troubles: list[ToolError] = field(default_factory=list)

    def registrations(self, make: Make) -> bool:
        """In C++, and where something was inferred, in Python too."""
        from schema_patch.source import tree

        for path in self.paths:
            with progress("reading") as step:
                units, errors = tree.read([path], self.known, step)
            plan = make(units, self.known, self.wanted)
            self.before += units
            self.after += plan.after
            self.troubles += errors
            if not self._carry_out(plan, path):
                return False
            if self.inferred and not self._carry_out(audit.plan_python(path, self.inferred, self.wanted), path):
                return False
        return True

    def judged(self, python: bool) -> Report | None:
        """The files read again, after callers and fakes in Python have followed."""
        from schema_patch.source import patch, tree

        with progress("checking") as step:
            units, errors = tree.read(self.paths, self.known, step)
            gone = patch.gone(self.after if self.diff else units, self.wanted, self.before) if python else []
            for path in self.paths:
                if not self._carry_out(tree.plan_python(path, gone, step), path):
                    return None
            findings, more = tree.read_python(self.paths, patch.gone(units, self.wanted, self.before), step)
            rows = audit.python_rows(self.paths, self.inferred, self.wanted) if self.inferred else []
        told = {str(error) for error in self.troubles}
        self.troubles += [error for error in (*errors, *more) if str(error) not in told]
        findings += [row.finding for row in rows if row.finding]
        left = self.inferred.left if self.inferred else ()
        findings += [finding for finding in left if self.wanted.takes(finding.op)]
        return patch.report(units, self.wanted, self.troubles, findings, [row.checked for row in rows])

    def tell(self) -> None:
        """What was changed; a diff has told it already."""
        if not self.diff:
            changes.show(self.done)

    def _carry_out(self, plan: TreePlan, path: str) -> bool:
        return changes.carry_out(plan, path, self.diff, self.done, self.troubles)
