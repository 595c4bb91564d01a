"""`python -m esimd_ops observe`: argv -> a program that is watched -> a report, a table. Prints like main.py."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from schema_patch.commands.console import show
from schema_patch.commands.help import Command, examples
from schema_patch.model import Report, ToolError

from .options import STRICT

FORMS = ("text", "json", "sarif", "html")


@click.command(
    cls=Command,
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "python -m esimd_ops observe --namespace mylib -o mylib.toml -- program.py",
        "python -m esimd_ops observe --from seen.json --html seen.html",
    ),
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- SCRIPT.PY|-m MODULE ARGS...]")
@click.option("--namespace", multiple=True, metavar="NS", help="Its operators (repeat, or commas) [default: all].")
@click.option("-o", "--out", metavar="FILE", help="Write what they do as an operator table, or add it to that one.")
@click.option("--html", metavar="FILE", help="Write the report there, as a page.")
@click.option("--save", metavar="DIR", help="Save each distinct call, for `--samples DIR` of probe, check and races.")
@click.option("--first", type=click.IntRange(min=1), default=10, show_default=True, help="So many calls of each shape,")
@click.option("--every", type=click.IntRange(min=0), default=100, show_default=True, help="then one in so many.")
@click.option("--budget", type=click.FloatRange(0, 1, min_open=True), help="Share of run time that it keeps: 0.05.")
@click.option("--from", "records", multiple=True, metavar="FILE", help="What SCHEMA_KIT_OBSERVE=FILE left (repeat).")
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True)
@STRICT
def observe(
    program: tuple[str, ...],
    namespace: tuple[str, ...],
    out: str | None,
    html: str | None,
    save: str | None,
    first: int,
    every: int,
    budget: float | None,
    records: tuple[str, ...],
    form: str,
    strict: bool,
) -> int:
    """Run a program and see what the operators that it calls really write and return.

    Exit code 1 where a schema is shown to be untrue, 2 where the program failed or nothing was seen. In servers and
    their workers: SCHEMA_KIT_OBSERVE=FILE, then --from FILE.
    """
    from esimd_ops.observe import judge, process, record, session, tables
    from esimd_ops.trials import given

    if bool(program) == bool(records):
        raise click.UsageError("expected a program after `--`, or --from FILE")
    if program and program[0] != "-m" and not Path(program[0]).exists():
        raise ToolError("expected a program, found no such file", program[0])
    if records and (save or budget is not None):
        raise click.UsageError("--save and --budget are for a program: SCHEMA_KIT_OBSERVE_OPTIONS has them too")
    code = 0
    if records:
        found = record.merged(record.recorded(Path(name)) for name in records)
        found = record.only(found, session.namespaces(namespace))
    else:
        folder = str(Path(save).absolute()) if save else ""
        options = process.Options(session.namespaces(namespace), first, every, budget, folder)
        found, code = process.run(program, options, out=None if form == "text" else sys.stderr)
    report = judge.report(found, strict=strict)
    if code:
        report = _with(report, ToolError(f"the program ended with exit code {code}", " ".join(program)))
    for name in (out, save and f"{save}/{given.TABLE}"):
        try:
            if name:
                tables.write(tables.table(found), Path(name))
        except ToolError as error:
            report = _with(report, error)
    if html:
        _page(report, html)
    if form == "text":
        for line in judge.doubts(report):
            click.echo(line)
    return show(report, form, title="observe")


def _with(report: Report, error: ToolError) -> Report:
    return replace(report, errors=(*report.errors, error))


def _page(report: Report, path: str) -> None:
    from schema_patch.report.formats import render
    from schema_patch.text import files

    files.write(Path(path), render(report, "html", title="observe").encode("utf-8", "surrogateescape"), path)
