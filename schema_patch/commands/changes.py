"""What apply and strip plan, shown or written; what became of each operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from schema_patch.model import ToolError, Verdict
from schema_patch.report.text import one_line

if TYPE_CHECKING:
    from schema_patch.source.patch import FilePlan

Write = Callable[[Any, str, "list[FilePlan]"], "list[ToolError]"]


def carry_out(
    plan: Any, path: str, diff: bool, done: list[FilePlan], troubles: list[ToolError], write: Write | None = None
) -> bool:
    """Shows a plan or writes it, adding to `done` and `troubles`. False where the user interrupted it."""
    from schema_patch.report.text import finding_line
    from schema_patch.source import tree

    troubles += plan.errors
    if diff:
        for planned in plan.files:
            click.echo(_diff(planned, path), nl=False)  # bytes, so that `patch` takes it whatever the encoding
        for finding in plan.left:
            click.echo(finding_line(finding), err=True)
        return True
    written: list[FilePlan] = []
    try:
        troubles += (write or tree.write)(plan, path, written) if plan.files or write else []
    except KeyboardInterrupt:
        message = f"interrupted: {len(written)} of {len(plan.files)} files written, each whole; take them back with"
        click.echo(f"{message} `schema-patch revert {path}`", err=True)
        return False
    done += written
    return True


def show(done: Sequence[FilePlan]) -> None:
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
    click.echo(f"{len(changes) or 'no'} operator{'' if len(changes) == 1 else 's'} changed", err=True)
    if answered:
        click.echo(f"{len(answered)} place{'' if len(answered) == 1 else 's'} in Python changed", err=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _diff(planned: FilePlan, root: str) -> bytes:
    from schema_patch.text.diff import pieces, shown, unified

    if planned.prove:  # a library has no lines
        texts = [(change.before, change.after) for change in planned.changes]
        return pieces(texts, shown(planned.file.path, root))
    return unified(planned.file.data, planned.new, shown(planned.file.path, root))
