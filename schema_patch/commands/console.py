"""What the commands have in common: showing a report, errors, progress.

Data goes to stdout, prose to stderr. Colours and progress only on a terminal; `NO_COLOR` is honoured.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schema_patch.model import Report, ToolError, Verdict
from schema_patch.report.formats import FORMATS, render
from schema_patch.schemas.selection import Selection, namespace_of, plain
from schema_patch.text.files import Steps

if TYPE_CHECKING:
    from schema_patch.schemas.table import Table

FORMAT = click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
OPS = click.option(
    "--ops", multiple=True, metavar="NAME", help="Only these operators: op or ns::op (repeat, or use commas)."
)
TABLES = click.option(
    "--table", "own", multiple=True, metavar="FILE", help="An operator table of your own, asked first (TOML; repeat)."
)
PATIENCE = 1.0  # seconds before progress is shown


def show(
    report: Report,
    form: str,
    *,
    quiet: Collection[Verdict] = (),
    silent: bool = False,
    summary: str = "",
    title: str = "schema-kit",
    asked: Sequence[str] = (),
) -> int:
    """Prints a report and gives its exit code. Verdicts in `quiet` were told already; `summary` replaces the usual.

    `asked`: the paths of binaries, whose report begins with the verdict and what to do next.
    """
    if not silent:
        text = render(report, form, title=title)
        if text:
            click.echo(text)
        else:
            if asked:
                _verdict(report, asked)
            _text(report, quiet, summary, grouped=bool(asked))
    show_errors(report.errors)
    return report.exit_code


@dataclass(frozen=True, slots=True)
class Reporting:
    """How a command that judges is asked to count and to tell: the options that `reported` adds."""

    form: str
    output: str | None
    github: bool
    strict: bool
    may_be_empty: bool

    def count(self, report: Report) -> Report:
        return replace(report, strict=self.strict, may_be_empty=self.may_be_empty)

    def show(
        self,
        report: Report,
        title: str,
        *,
        quiet: Collection[Verdict] = (),
        summary: str = "",
        asked: Sequence[str] = (),
    ) -> int:
        """Tells of a report everywhere it was asked for; its exit code."""
        from schema_patch.report import people, text
        from schema_patch.text import files

        form = self.form
        if self.github:
            annotations = text.github(report)
            click.echo(annotations, nl=bool(annotations))
        if self.output:
            lead = f"{people.headline(report)}\n" if asked else ""
            written = render(report, form, title=title) or f"{lead}{text.text(report)}\n"
            files.write(Path(self.output), written.encode("utf-8", "surrogateescape"), self.output)
            form = "text"
        return show(report, form, quiet=quiet, summary=summary, title=title, asked=asked)


def reported(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the options of Reporting, and the command these as `how`."""

    @click.option("--may-be-empty", is_flag=True, help="Nothing to verify is no failure: for hooks.")
    @click.option("--strict", is_flag=True, help="Warnings count as findings.")
    @click.option("--github", is_flag=True, help="Also print findings as annotations for GitHub Actions.")
    @click.option("--output", "-o", metavar="FILE", help="Write the report here, and a text to stdout.")
    @FORMAT
    @wraps(command)
    def call(
        *args: Any, form: str, output: str | None, github: bool, strict: bool, may_be_empty: bool, **more: Any
    ) -> int:
        return command(*args, how=Reporting(form, output, github, strict, may_be_empty), **more)

    return call


def _verdict(report: Report, asked: Sequence[str]) -> None:
    from schema_patch.report import people

    click.echo(people.headline(report))
    for step in people.steps(report, asked):
        click.echo(step, err=True)
    for line in people.unread(report):
        click.echo(line, err=True)


def _text(report: Report, quiet: Collection[Verdict], summary: str, *, grouped: bool = False) -> None:
    from schema_patch.report import text as lines
    from schema_patch.schemas import codes

    told = {row.location for row in report.checked if row.verdict in quiet}
    if sys.stdout.isatty() and not summary:
        _table(report)
    findings = [finding for finding in report.findings if finding.location not in told]
    for line in lines.finding_lines(findings) if grouped else map(lines.finding_line, findings):
        click.echo(line)
    for code in sorted({finding.code for finding in findings}):
        page = lines.page(f"codes/{code}")
        click.echo(f"{code}: {f'see {page}' if page else codes.load()[code].text}", err=True)
    for line in lines.package_lines(report):
        click.echo(line)
    click.echo(summary or lines.summary(report))


def _table(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from schema_patch.report import text as lines

    colours = {
        Verdict.RIGHT: "green",
        Verdict.NEEDS_GUARD: "yellow",
        Verdict.OVER_DECLARED: "yellow",
        Verdict.WRONG: "red",
    }
    table = Table(*(Column(name, overflow="fold") for name in ("operator", "verdict", "why")), header_style="bold")
    for row in lines.rows(report):
        table.add_row(escape(row.op), f"[{colours[row.verdict]}]{row.verdict.value}", escape(row.reason))
    if table.row_count:
        Console().print(table)


def needs_linux(what: str) -> None:
    """Says so where it is something else."""
    if not sys.platform.startswith("linux"):
        raise ToolError(f"{what} needs Linux, found {sys.platform}; check, apply, audit and verify-schemas work here")


def show_errors(found: Iterable[ToolError]) -> None:
    """Prints what could not be done."""
    from schema_patch.report import text as lines

    for error in found:
        click.echo(lines.error_line(error), err=True)


def split(names: Iterable[str]) -> tuple[str, ...]:
    """Names that were given one by one or with commas between."""
    return tuple(name for part in names for name in part.replace(",", " ").split())


def tables(own: Iterable[str]) -> Table:
    """The operator tables that --table names, and the one that ships. Raises ToolError."""
    from schema_patch.schemas import table

    return table.joined([*map(table.read_file, own), table.load()])


def selection(names: Sequence[str]) -> Selection:
    """The operators asked for with --ops. Names that are none are a mistake, not an empty result."""
    try:
        asked = Selection.of(names)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ops") from error
    if names and not asked:
        raise click.BadParameter("expected the name of an operator, found none", param_hint="--ops")
    return asked


def known_ops(names: Sequence[str], known: Table) -> Selection:
    """... of which each must be in a table."""
    asked = selection(names)
    for name in asked.names:
        if not known.knows(plain(name)):
            import difflib

            near = difflib.get_close_matches(plain(name), known.entries, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.BadParameter(f"{name} is not in the operator table{hint}", param_hint="--ops")
    return asked


def within(asked: Selection, namespace: str) -> tuple[str, ...]:
    """The plain names, for a command that looks into one namespace."""
    for name in asked.names:
        if namespace_of(name) not in (None, namespace):
            raise click.BadParameter(f"{name} is not in --namespace {namespace}", param_hint="--ops")
    return tuple(plain(name) for name in asked.names)


@contextmanager
def progress(verb: str) -> Iterator[Steps]:
    """Shows how many files were read and the one at hand, on a terminal, once it takes over a second."""
    if not sys.stderr.isatty():
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(verb),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", total=None)

    class Shown(Steps):
        def __call__(self, path: str) -> None:
            bar.update(task, advance=1, description=path[-60:])

        def expect(self, count: int) -> None:
            bar.update(task, total=(bar.tasks[0].total or 0) + count)

    clock = threading.Timer(PATIENCE, bar.start)
    clock.daemon = True
    clock.start()
    try:
        yield Shown()
    finally:
        clock.cancel()
        clock.join()
        bar.stop()


@contextmanager
def status(verb: str) -> Iterator[Callable[[str], None]]:
    """Shows what is at hand, on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as shown:
        yield lambda what: shown.update(f"{verb} {what}".strip())
