"""argv -> calls -> streams and exit code. The commands of `schema-patch` that work on C++ source.

Exit codes: 0 clean, 1 findings, 2 could not run (or nothing was verified). Data to stdout, prose to stderr.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from schema_patch.commands.console import FORMAT, OPS, Reporting, known_ops, progress, reported, show, show_errors
from schema_patch.model import ToolError, Verdict

from . import audit, build, ending, serving
from .help import SETTINGS, Group, examples
from .verify import verify_schemas
from .version import VERSION

if TYPE_CHECKING:
    from schema_patch.audit.judge import InferredTable
    from schema_patch.source.patch import FilePlan, TreePlan, Unit

PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
DIFF = click.option("--diff", is_flag=True, help="Show the change as a diff and write nothing.")


@click.group(cls=Group, context_settings=SETTINGS, epilog=examples(
    "schema-patch audit csrc", "schema-patch apply --diff csrc",
))  # fmt: skip
@VERSION
def schema_patch() -> None:
    """Find and fix operator schemas that do not say what the operator writes."""


@schema_patch.command(
    epilog=examples("schema-patch check csrc", "schema-patch check --strict --format sarif -o check.sarif .")
)
@PATHS
@OPS
@reported
def check(paths: tuple[str, ...], ops: tuple[str, ...], how: Reporting) -> int:
    """Judge the operators that a source tree registers. Writes nothing."""
    from schema_patch.schemas import rules, table
    from schema_patch.source import patch, tree

    known = table.load()
    wanted = known_ops(ops, known)
    with progress("reading") as step:
        units, errors = tree.read(paths, known, step)
        findings, more = tree.read_python(paths, patch.gone(units, wanted), step)
    report = patch.report(units, wanted, [*errors, *more], findings)
    code = how.show(how.count(report), f"schema-patch check {' '.join(paths)}")
    others = sorted({row.op for row in report.checked if row.reason == rules.NOT_IN_TABLE})
    if others:
        many = f"{len(others)} operators are" if len(others) > 1 else "1 operator is"
        judged = f"judged by `schema-patch audit {' '.join(map(shlex.quote, paths))}`"
        folded = textwrap.fill(f"{many} in no table, {judged}:", 80, break_long_words=False, break_on_hyphens=False)
        names = textwrap.fill(", ".join(others), 80, break_long_words=False, break_on_hyphens=False)
        click.echo(f"{folded}\n{names}", err=True)
    return code


@schema_patch.command(
    epilog=examples("schema-patch apply --diff csrc", "schema-patch apply --infer --ops mylib::op csrc")
)
@PATHS
@OPS
@click.option(
    "--returns",
    type=click.Choice(["alias", "void"]),
    default="alias",
    show_default=True,
    help="What an operator that hands its output back returns after the change: alias, the published fix, which "
    "torch.compile cannot trace without the guard; or void, which it can. Python callers and fakes at PATH follow.",
)
@click.option(
    "--infer", is_flag=True, help="Also the operators that no table knows, C++ and Python, as `audit` infers."
)
@DIFF
@FORMAT
def apply(paths: tuple[str, ...], ops: tuple[str, ...], returns: str, infer: bool, diff: bool, form: str) -> int:
    """Write (a!) where an operator writes; nothing else changes."""
    from schema_patch.schemas.annotate import Returns
    from schema_patch.source import patch

    def plan(units: Any, known: Any, wanted: Any) -> TreePlan:
        return patch.annotate_all(units, known, Returns(returns), wanted)

    known = audit.inferred(paths) if infer else None
    return _rewrite(paths, ops, diff, form, plan, judge=True, python=returns == "void", inferred=known)


@schema_patch.command(epilog=examples("schema-patch strip --diff csrc", "schema-patch strip --ops esimd_rms_norm csrc"))
@PATHS
@OPS
@DIFF
def strip(paths: tuple[str, ...], ops: tuple[str, ...], diff: bool) -> int:
    """Take the write annotations of known operators away: the control build of an experiment."""
    from schema_patch.source import patch

    return _rewrite(paths, ops, diff, "text", patch.strip_all, judge=False)


@schema_patch.command(epilog=examples("schema-patch revert csrc", "schema-patch revert mylib otherlib"))
@PATHS
def revert(paths: tuple[str, ...]) -> int:
    """Give back the bytes from before apply or strip, from the journal in each PATH."""
    from schema_patch.source import tree

    restored: list[str] = []
    errors: list[ToolError] = []
    for path in paths:
        try:
            found, failed = tree.revert(path)
        except ToolError as error:
            found, failed = [], [error]
        restored += found
        errors += failed
    for name in restored:
        click.echo(f"reverted {name}")
    show_errors(errors)
    if not restored and not errors:
        click.echo("every file already holds its original bytes", err=True)
    return 2 if errors else 0


schema_patch.add_command(build.doctor)
schema_patch.add_command(build.rebuild)
schema_patch.add_command(audit.audit)
schema_patch.add_command(serving.caches)
schema_patch.add_command(serving.splitting_ops)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m schema_patch` and `schema-patch`."""
    return ending.run(schema_patch, argv, "schema-patch")


def main_verify(argv: Sequence[str] | None = None) -> int:
    """`verify-schemas`."""
    return ending.run(verify_schemas, argv, "verify-schemas")


def _rewrite(
    paths: tuple[str, ...],
    ops: tuple[str, ...],
    diff: bool,
    form: str,
    make: Callable[..., TreePlan],
    *,
    judge: bool,
    python: bool = False,
    inferred: InferredTable | None = None,
) -> int:
    """The common course of apply and strip, one journal a path: read, plan, write, read again, judge."""
    from schema_patch.schemas import table
    from schema_patch.source import patch, tree

    if diff and form != "text":
        raise click.UsageError("--diff shows a diff: leave --format out")
    known = inferred or table.load()
    wanted = known_ops(ops, known)
    troubles: list[ToolError] = []
    done: list[FilePlan] = []
    before: list[Unit] = []
    after: list[Unit] = []
    for path in paths:
        with progress("reading") as step:
            units, errors = tree.read([path], known, step)
        plan = make(units, known, wanted)
        before += units
        after += plan.after
        troubles += errors
        if not _carry_out(plan, path, diff, done, troubles):
            return 2
        if inferred and not _carry_out(audit.plan_python(path, inferred, wanted), path, diff, done, troubles):
            return 2
    if not judge:
        if not diff:
            _changes(done)
        show_errors(troubles)
        return 2 if troubles else 0
    with progress("checking") as step:
        units, errors = tree.read(paths, known, step)
        gone = patch.gone(after if diff else units, wanted, before) if python else []
        for path in paths:
            if not _carry_out(tree.plan_python(path, gone, step), path, diff, done, troubles):
                return 2
        findings, more = tree.read_python(paths, patch.gone(units, wanted, before), step)
        rows = audit.python_rows(paths, inferred, wanted) if inferred else []
    if form == "text" and not diff:
        _changes(done)
    told = {str(error) for error in troubles}
    troubles += [error for error in (*errors, *more) if str(error) not in told]
    findings += [row.finding for row in rows if row.finding]
    findings += [finding for finding in inferred.left if wanted.takes(finding.op)] if inferred else []
    report = patch.report(units, wanted, troubles, findings, [row.checked for row in rows])
    return show(report, form, quiet={Verdict.NEEDS_GUARD}, silent=diff)


def _carry_out(plan: TreePlan, path: str, diff: bool, done: list[FilePlan], troubles: list[ToolError]) -> bool:
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
        troubles += tree.write(plan, path, written) if plan.files else []
    except KeyboardInterrupt:
        message = f"interrupted: {len(written)} of {len(plan.files)} files written, each whole; take them back with"
        click.echo(f"{message} `schema-patch revert {path}`", err=True)
        return False
    done += written
    return True


def _changes(done: Sequence[FilePlan]) -> None:
    changes = [change for planned in done for change in planned.changes]
    for change in changes:
        click.echo(f"{change.location}: {change.op}")
        click.echo(f"  - {_one_line(change.before)}")
        click.echo(f"  + {_one_line(change.after)}")
        if change.judgement.verdict is Verdict.NEEDS_GUARD:
            click.echo("    its result cannot be traced by torch.compile without the guard")
    answered = [finding for planned in done for finding in planned.answered]
    for finding in answered:
        what = "returns nothing now" if finding.code == "SP006" else "is followed by its buffer now"
        click.echo(f"{finding.location}: {finding.op}: {what}")
    click.echo(f"{len(changes) or 'no'} operator{'' if len(changes) == 1 else 's'} changed", err=True)
    if answered:
        click.echo(f"{len(answered)} place{'' if len(answered) == 1 else 's'} in Python changed", err=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _diff(planned: FilePlan, root: str) -> bytes:
    from schema_patch.text.diff import shown, unified

    return unified(planned.file.data, planned.new, shown(planned.file.path, root))
