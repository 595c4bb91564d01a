"""argv -> calls -> streams and exit code. The only file that prints.

Exit codes: 0 clean, 1 findings, 2 could not run (or nothing was verified). Data to stdout, prose to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import click

from . import __version__
from .model import Report, ToolError, Verdict

if TYPE_CHECKING:
    from .patch import FilePlan, Plan

PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
OPS = click.option(
    "--ops", multiple=True, metavar="NAME", help="Only these operators (repeat, or separate with commas)."
)
FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
STRICT = click.option("--strict", is_flag=True, help="Warnings count as findings.")
DIFF = click.option("--diff", is_flag=True, help="Show the change as a diff and write nothing.")
SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=SETTINGS)
@click.version_option(__version__)
def schema_patch() -> None:
    """Find and fix operator schemas that do not say what the operator writes."""


@schema_patch.command()
@PATHS
@OPS
@STRICT
@FORMAT
def check(paths: tuple[str, ...], ops: tuple[str, ...], strict: bool, form: str) -> int:
    """Judge the operators that a source tree registers. Writes nothing."""
    from . import patch, table, tree

    known = table.load()
    wanted = _names(ops, known)
    with _progress("reading") as step:
        units, errors = tree.read(paths, known, step)
    return _show(_strict(patch.report(units, wanted, errors), strict), form)


@schema_patch.command()
@PATHS
@OPS
@click.option(
    "--returns",
    type=click.Choice(["alias", "void"]),
    default="alias",
    show_default=True,
    help="What an operator that hands its output back returns after the change: alias, the published fix, which "
    "torch.compile cannot trace without the guard; or void, which it can (callers must not use the return).",
)
@DIFF
@FORMAT
def apply(paths: tuple[str, ...], ops: tuple[str, ...], returns: str, diff: bool, form: str) -> int:
    """Write (a!) where an operator writes; nothing else changes."""
    from . import patch
    from .annotate import Returns

    def plan(units: Any, known: Any, wanted: Any) -> Plan:
        return patch.annotate_all(units, known, Returns(returns), wanted)

    return _rewrite(paths, ops, diff, form, plan, judge=True)


@schema_patch.command()
@PATHS
@OPS
@DIFF
def strip(paths: tuple[str, ...], ops: tuple[str, ...], diff: bool) -> int:
    """Take the write annotations of known operators away: the control build of an experiment."""
    from . import patch

    return _rewrite(paths, ops, diff, "text", patch.strip_all, judge=False)


@schema_patch.command()
@click.argument("path")
def revert(path: str) -> int:
    """Give back the bytes from before apply or strip, from the journal in PATH."""
    from . import tree

    restored, errors = tree.revert(path)
    for name in restored:
        click.echo(f"reverted {name}")
    _errors(errors)
    if not restored and not errors:
        click.echo("every file already holds its original bytes", err=True)
    return 2 if errors else 0


@click.command(context_settings=SETTINGS)
@PATHS
@click.option(
    "--require",
    multiple=True,
    metavar="NAME",
    help="Fail unless this operator is present and right (repeat, or commas).",
)
@click.option("--sycl", metavar="MAJOR", help="The libsycl.so major version that binaries must need [default: 8].")
@click.option("--all", "include_all", is_flag=True, help="Look into the platform's own packages (torch, …) too.")
@STRICT
@FORMAT
@click.version_option(__version__)
def verify_schemas(
    paths: tuple[str, ...], require: tuple[str, ...], sycl: str | None, include_all: bool, strict: bool, form: str
) -> int:
    """Judge the operators in installed binaries: site-packages, a wheel or a .so. Loads and runs nothing."""
    from . import verify

    with _progress("reading") as step:
        report = verify.verify(paths, require=_split(require), sycl=sycl, include_all=include_all, progress=step)
    return _show(_strict(report, strict), form)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m schema_patch` and `schema-patch`."""
    return _run(schema_patch, argv, "schema-patch")


def main_verify(argv: Sequence[str] | None = None) -> int:
    """`verify-schemas`."""
    return _run(verify_schemas, argv, "verify-schemas")


def _run(command: click.Command, argv: Sequence[str] | None, name: str) -> int:
    try:
        return int(command.main(args=None if argv is None else list(argv), prog_name=name, standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return 2
    except ToolError as error:
        _errors([error])
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 2
    except BrokenPipeError:  # `| head`: the reader has seen enough
        sys.stderr.close()
        return 2


def _rewrite(
    paths: tuple[str, ...], ops: tuple[str, ...], diff: bool, form: str, make: Callable[..., Plan], *, judge: bool
) -> int:
    """The common course of apply and strip, one journal a path: read, plan, write, read again, judge."""
    from . import patch, table, tree

    known = table.load()
    wanted = _names(ops, known)
    troubles: list[ToolError] = []
    changes: list[Any] = []
    for path in paths:
        with _progress("reading") as step:
            units, errors = tree.read([path], known, step)
        plan = make(units, known, wanted)
        troubles += [*errors, *plan.errors]
        if diff:
            for planned in plan.files:
                click.echo(_diff(planned), nl=False)
        elif plan.files:
            done: list[FilePlan] = []
            try:
                troubles += tree.write(plan, path, done)
            except KeyboardInterrupt:
                message = (
                    f"interrupted: {len(done)} of {len(plan.files)} files written, each whole; take them back with"
                )
                click.echo(f"{message} `schema-patch revert {path}`", err=True)
                return 2
            changes += [change for planned in done for change in planned.changes]
    if form == "text" and not diff:
        _changes(changes)
    if not judge:
        _errors(troubles)
        return 2 if troubles else 0
    with _progress("checking") as step:
        units, errors = tree.read(paths, known, step)
    told = {str(error) for error in troubles}
    report = patch.report(units, wanted, [*troubles, *(error for error in errors if str(error) not in told)])
    return _show(report, form, quiet={Verdict.NEEDS_GUARD}, silent=diff)


def _changes(changes: Sequence[Any]) -> None:
    for change in changes:
        click.echo(f"{change.location}: {change.op}")
        click.echo(f"  - {_one_line(change.before)}")
        click.echo(f"  + {_one_line(change.after)}")
        if change.judgement.verdict is Verdict.NEEDS_GUARD:
            click.echo("    its result cannot be traced by torch.compile without the guard")
    click.echo(f"{len(changes) or 'no'} operator{'' if len(changes) == 1 else 's'} changed", err=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _diff(planned: FilePlan) -> str:
    before, after = (
        data.decode("utf-8", "backslashreplace").splitlines(keepends=True) for data in (planned.file.data, planned.new)
    )
    lines = unified_diff(before, after, f"a/{planned.file.path}", f"b/{planned.file.path}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _show(report: Report, form: str, *, quiet: set[Verdict] = frozenset(), silent: bool = False) -> int:  # type: ignore[assignment]
    """Prints a report; verdicts in `quiet` were told already."""
    from . import report as render

    if silent:
        pass
    elif form == "json":
        click.echo(render.json(report))
    else:
        told = {row.location for row in report.checked if row.verdict in quiet}
        shown = [finding for finding in report.findings if finding.location not in told]
        if sys.stdout.isatty():
            _table(report)
        for finding in shown:
            click.echo(render.finding_line(finding))
        click.echo(render.summary(report))
    _errors(report.errors)
    return report.exit_code


def _table(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    from . import report as render

    colours = {
        Verdict.RIGHT: "green",
        Verdict.NEEDS_GUARD: "yellow",
        Verdict.OVER_DECLARED: "yellow",
        Verdict.WRONG: "red",
    }
    table = Table("operator", "verdict", "why", header_style="bold")
    for row in render.rows(report):
        table.add_row(row.op, f"[{colours[row.verdict]}]{row.verdict.value}", row.reason)
    if table.row_count:
        Console().print(table)


def _errors(errors: Iterable[ToolError]) -> None:
    from . import report as render

    for error in errors:
        click.echo(render.error_line(error), err=True)


def _strict(report: Report, strict: bool) -> Report:
    from dataclasses import replace

    return replace(report, strict=strict)


def _split(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for part in names for name in part.replace(",", " ").split())


def _names(ops: Iterable[str], known: Any) -> frozenset[str]:
    """The operators asked for; a name that the table does not know is a mistake, not an empty result."""
    names = _split(ops)
    for name in names:
        if not known.knows(name):
            import difflib

            near = difflib.get_close_matches(name, known.entries, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.BadParameter(f"{name} is not in the operator table{hint}", param_hint="--ops")
    return frozenset(names)


@contextmanager
def _progress(verb: str) -> Iterator[Callable[[str], None]]:
    """Shows the file at hand on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(verb) as status:
        yield lambda path: status.update(f"{verb} {path}")
