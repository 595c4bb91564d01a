"""apply and strip on source trees: read, plan, write, read again, judge. One journal a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schema_patch.model import Report

from . import audit
from .changes import Changes
from .console import known_ops, progress

if TYPE_CHECKING:
    from schema_patch.audit.judge import InferredTable
    from schema_patch.schemas.selection import Selection
    from schema_patch.schemas.table import Table
    from schema_patch.source.patch import Unit


def rewrite(
    paths: tuple[str, ...],
    known: Table,
    ops: tuple[str, ...],
    changes: Changes,
    returns: str,
    inferred: InferredTable | None,
) -> int:
    """Annotates the operators asked for, or without `returns` takes annotations away; the exit code.

    Where they return nothing then, callers and fakes follow. inferred: what operators in no table do.
    """
    known = inferred or known
    work = _Trees(changes, paths, known, known_ops(ops, known), inferred, returns)
    work.registrations()
    return changes.end(work.judged() if returns else None)


@dataclass
class _Trees:
    """What is asked for, and what the files register before and after the change."""

    changes: Changes
    paths: tuple[str, ...]
    known: Table
    wanted: Selection
    inferred: InferredTable | None
    returns: str
    before: list[Unit] = field(default_factory=list)
    after: list[Unit] = field(default_factory=list)

    def registrations(self) -> None:
        """In C++, and where something was inferred, in Python too."""
        from schema_patch.schemas.annotate import Returns
        from schema_patch.source import patch, tree

        for path in self.paths:
            with progress("reading") as step:
                units, errors = tree.read([path], self.known, step)
            if self.returns:
                plan = patch.annotate_all(units, self.known, Returns(self.returns), self.wanted)
            else:
                plan = patch.strip_all(units, self.known, self.wanted)
            self.before += units
            self.after += plan.after
            self.changes.troubles += errors
            self.changes.carry_out(plan, path)
            if self.inferred:
                self.changes.carry_out(audit.plan_python(path, self.inferred, self.wanted), path)

    def judged(self) -> Report:
        """The files read again, after callers and fakes in Python have followed."""
        from schema_patch.source import patch, tree

        with progress("checking") as step:
            units, errors = tree.read(self.paths, self.known, step)
            after = self.after if self.changes.diff else units
            gone = patch.gone(after, self.wanted, self.before) if self.returns == "void" else []
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
