"""The command `audit`. Prints like cli.py, which it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schema_patch.commands.console import TABLES, Reporting, progress, reported, show_errors, tables
from schema_patch.model import Report, ToolError, Verdict
from schema_patch.report.text import one_line
from schema_patch.schemas.selection import Selection

from .help import Command, examples

if TYPE_CHECKING:
    from schema_patch.audit.judge import Audit, InferredTable
    from schema_patch.audit.python import PyRow
    from schema_patch.schemas.table import Table
    from schema_patch.source.plans import TreePlan


@click.command(cls=Command, epilog=examples(
    "schema-patch audit csrc", "schema-patch audit --baseline accepted.json --format sarif -o audit.sarif .",
))  # fmt: skip
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--baseline", metavar="FILE", help="Accept the findings that this file lists; only new ones count.")
@click.option("--write-baseline", metavar="FILE", help="Accept what is found now: write it there.")
@click.option("--no-cache", is_flag=True, help="Read every file anew, and remember nothing.")
@TABLES
@reported
def audit(
    paths: tuple[str, ...],
    baseline: str | None,
    write_baseline: str | None,
    no_cache: bool,
    own: tuple[str, ...],
    how: Reporting,
) -> int:
    """Infer from C++ what each operator writes and returns, and compare its schema. Writes nothing.

    Each finding comes with the chain of places from the argument to the store. What could not be followed is unknown,
    never a finding, but where --table knows it; --strict lists it, and counts warnings. A comment
    `// schema-patch: ignore[SP101] why` above an operator's registration accepts a finding.
    """
    from schema_patch.audit import judge as work
    from schema_patch.audit import suppress
    from schema_patch.report import people

    with progress("auditing") as step:
        result = work.audit(paths, step, cached=not no_cache, known=tables(own) if own else None)
    report = how.count(work.report(result))
    kept, suppressed = suppress.apply(report.findings, result.sources)
    report = replace(report, findings=tuple(kept))
    if write_baseline:
        Path(write_baseline).write_bytes(suppress.write(report.failed, write_baseline))
        click.echo(f"accepted in {write_baseline}: {len(report.failed)} of {len(report.findings)} findings", err=True)
        show_errors(report.errors)
        return 2 if report.exit_code == 2 else 0
    if baseline:
        report = _against(report, baseline)
    if suppressed:
        click.echo(f"{suppressed} suppressed by comments", err=True)
    if how.form == "text" and how.strict:
        _unknown(result)
    quiet = () if how.strict else (Verdict.NEEDS_GUARD,)
    unread = sum(finding.code == "SP002" for finding in report.findings if finding not in report.failed)
    if unread and how.form == "text" and not how.strict:
        many = "registrations" if unread > 1 else "registration"
        click.echo(f"{unread} {many} could not be read: --strict lists them", err=True)
    shown = report if how.strict or how.form != "text" else replace(report, findings=report.failed)
    code = how.show(shown, f"schema-patch audit {' '.join(paths)}", quiet=quiet)
    for line in people.in_source(shown, paths, "--infer ") if how.form == "text" else ():
        click.echo(line, err=True)
    return code


def inferred(paths: tuple[str, ...], known: Table) -> InferredTable:
    """An operator table with what an audit of these trees infers: for `apply --infer`."""
    from schema_patch.audit import judge as work

    with progress("auditing") as step:
        return work.inferred_table(known, work.audit(paths, step))


def plan_python(path: str, known: InferredTable, ops: Selection) -> TreePlan:
    """New bytes for the Python files at a path that register operators and do not declare what these write."""
    from schema_patch.audit import apply

    return apply.plan(path, known.audit.cpp, ops)


def python_rows(paths: Iterable[str], known: InferredTable, ops: Selection) -> list[PyRow]:
    """The operators that Python files at these paths register, judged as the files stand."""
    from schema_patch.audit import apply
    from schema_patch.python import tree

    return apply.rows_of(tree.gather(paths, lambda _: None), known.audit.cpp, ops)


def _against(report: Report, baseline: str) -> Report:
    """The report without what the baseline accepts; an entry that is found no more is said so."""
    from schema_patch.audit import suppress

    try:
        data = Path(baseline).read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read the baseline: {error.strerror}", baseline) from error
    kept, gone = suppress.new(report.findings, data, baseline)
    for entry in gone:
        told = f"{baseline}: {entry.code} {entry.op} in {entry.path} is found no more: take it out"
        click.echo(one_line(told), err=True)
    click.echo(f"{len(report.findings) - len(kept)} findings accepted by {baseline}", err=True)
    return replace(report, findings=tuple(kept))


def _unknown(result: Audit) -> None:
    from schema_patch.schemas.inferred import Kind

    for row in result.rows:
        for answer in row.inferred.answers:
            if answer.kind is Kind.UNKNOWN:
                told = f"unknown: {row.operator.op}: '{answer.name}' {answer.reason}"
                click.echo(one_line(f"{row.operator.location}: {told}"))
