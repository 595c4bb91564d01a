"""What apply and strip plan, shown or written; what became of each operator; how both end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from schema_patch.model import Report, ToolError, Verdict
from schema_patch.report.text import finding_line, many, one_line

from . import console

if TYPE_CHECKING:
    from schema_patch.source.plans import FilePlan

Write = Callable[[Any, str, "list[FilePlan]"], "list[ToolError]"]


@dataclass
class Changes:
    """One run: how it is told, and what was done, or shown of it, so far."""

    diff: bool
    form: str
    done: list[FilePlan] = field(default_factory=list)
    troubles: list[ToolError] = field(default_factory=list)

    def carry_out(self, plan: Any, path: str, write: Write | None = None) -> None:
        """Shows a plan or writes it. Ends the program where the user interrupts it."""
        from schema_patch.source import plans

        self.troubles += plan.errors
        if self.diff:
            for planned in plan.files:
                click.echo(_diff(planned, path), nl=False)  # bytes, so that `patch` takes it whatever the encoding
            for finding in plan.left:
                click.echo(finding_line(finding), err=True)
            self.done += plan.files
            return
        written: list[FilePlan] = []
        try:
            self.troubles += (write or plans.write)(plan, path, written) if plan.files or write else []
        except KeyboardInterrupt:
            message = f"interrupted: {len(written)} of {len(plan.files)} files written, each whole; take them back with"
            raise click.ClickException(f"{message} `schema-patch revert {path}`") from None
        self.done += written

    def end(self, report: Report | None) -> int:
        """Tells what became of the operators, and how all stands now where that was judged; the exit code."""
        if self.diff and not self.done:
            click.echo("nothing to change", err=True)
        elif self.form == "text" and not self.diff:
            _show(self.done)
        if report is None:
            console.show_errors(self.troubles)
            return 2 if self.troubles else 0
        return console.show(report, self.form, quiet={Verdict.NEEDS_GUARD}, silent=self.diff)


def _show(done: list[FilePlan]) -> None:
    changes = [change for planned in done for change in planned.changes]
    for change in changes:
        click.echo(one_line(f"{change.location}: {change.op}"))
        click.echo(f"  - {_one_line(change.before)}")
        click.echo(f"  + {_one_line(change.after)}")
        if change.judgement.verdict is Verdict.NEEDS_GUARD:
            click.echo("    its result cannot be traced by torch.compile without the guard")
    answered = [finding for planned in done for finding in planned.answered]
    for finding in answered:
        what = "returns nothing now" if finding.code == "SP006" else "is followed by its buffer now"
        click.echo(one_line(f"{finding.location}: {finding.op}: {what}"))
    click.echo(f"{many(len(changes), 'operator') if changes else 'no operators'} changed", err=True)
    if answered:
        click.echo(f"{many(len(answered), 'place')} in Python changed", err=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _diff(planned: FilePlan, root: str) -> bytes:
    from schema_patch.text.diff import pieces, shown, unified

    if planned.prove:  # a library has no lines
        texts = [(change.before, change.after) for change in planned.changes]
        return pieces(texts, shown(planned.file.path, root))
    return unified(planned.file.data, planned.new, shown(planned.file.path, root))
