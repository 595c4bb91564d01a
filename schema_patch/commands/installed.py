"""apply and strip on what is installed: argv -> plans -> files or wheels, journal, report."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from schema_patch.model import Report, ToolError, Verdict

from . import changes
from .console import known_ops, progress, show, show_errors

if TYPE_CHECKING:
    from schema_patch.binary.tree import InstalledPlan
    from schema_patch.elf.reader import ElfFacts
    from schema_patch.schemas.selection import Selection
    from schema_patch.schemas.table import Table
    from schema_patch.source.patch import FilePlan

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
    ops: tuple[str, ...],
    diff: bool,
    form: str,
    *,
    load: bool,
    wheel_out: str | None,
    judge: bool,
) -> int:
    """The common course of both: read, plan, prove, replace; then judge what is there."""
    from schema_patch.binary import plan as plans
    from schema_patch.binary import tree, wheel
    from schema_patch.schemas import table

    if diff and form != "text":
        raise click.UsageError("--diff shows a diff: leave --format out")
    known = table.everything()
    wanted = known_ops(ops, known)
    make = plans.annotated if judge else plans.stripped
    done: list[FilePlan] = []
    troubles: list[ToolError] = []
    facts: list[ElfFacts] = []
    for path in paths:
        in_wheel = wheel.is_wheel(path)
        try:
            if in_wheel and not (wheel_out or diff):
                raise ToolError("a wheel is not changed in place, its hash may be known: say --wheel-out DIR", path)
            if in_wheel and load:
                raise ToolError("--load needs what is around a library: install the new wheel, then load that", path)
            with progress("reading") as step:
                if in_wheel:
                    plan = wheel.plan_all(path, known, wanted, make, step)
                else:
                    plan = tree.plan_all(path, known, wanted, make, loads=load, progress=step)
            if in_wheel and wheel_out and not diff:
                done += plan.files
                troubles += plan.errors
                if plan.files:
                    click.echo(wheel.write(plan, path, wheel_out), err=True)
            elif not changes.carry_out(plan, path, diff, done, troubles, tree.write):
                return 2
        except ToolError as error:
            troubles.append(error)
            continue
        troubles += _proved(plan) if diff else []
        for note in plan.notes:
            click.echo(note, err=True)
        facts += plan.facts
    if form == "text" and not diff:
        changes.show(done)
    if not judge:
        show_errors(troubles)
        return 2 if troubles else 0
    return show(_report(facts, known, wanted, troubles), form, quiet={Verdict.NEEDS_GUARD}, silent=diff)


def _proved(plan: InstalledPlan) -> list[ToolError]:
    """Why plans that are only shown could not be carried out."""
    errors: list[ToolError] = []
    for planned in plan.files:
        if planned.prove:
            with tempfile.NamedTemporaryFile(prefix="schema-patch-", suffix=".so") as file:
                file.write(planned.new)
                file.flush()
                try:
                    planned.prove(file.name)
                except ToolError as error:
                    errors.append(error)
    return errors


def _report(facts: Sequence[ElfFacts], known: Table, wanted: Selection, troubles: Sequence[ToolError]) -> Report:
    """The verdicts on the operators alone: what else a library must be is for verify-schemas."""
    from schema_patch.installed import policy
    from schema_patch.verify import judge

    report = judge.check(facts, known, sycl=policy.load().sycl.major)
    checked = tuple(row for row in report.checked if wanted.takes(row.op))
    findings = tuple(finding for finding in report.findings if finding.op and wanted.takes(finding.op))
    missing = [
        ToolError(f"{name}: asked for, but in no library here")
        for name in wanted.missing((None, row.op) for row in checked)
    ]
    told = {str(error) for error in troubles}
    errors = [error for error in report.errors if str(error) not in told]
    return Report(checked, findings, (*troubles, *errors, *missing))
