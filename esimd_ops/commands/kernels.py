"""`esimd_ops kernels`: argv -> calls -> streams and exit code. Prints like host.py, beside which it stands."""

from __future__ import annotations

import os
from pathlib import Path

import click

from schema_patch.commands.console import show_errors, split, status
from schema_patch.commands.help import Command, examples

from .options import STRICT


@click.command(cls=Command, epilog=examples(
    "python -m esimd_ops kernels build/bmg/schema_kit.whl --target bmg-g21",
    "python -m esimd_ops kernels TREE --target bmg-g21,bmg-g31 --against before.json --format html",
))  # fmt: skip
@click.argument("where", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMPILER WORDS]")
@click.option("--target", "names", multiple=True, required=True, metavar="DEVICE[,DEVICE]", help="bmg-g21, bmg, …")
@click.option("--against", metavar="FILE", help="An earlier run (--format json): what became worse is a finding.")
@click.option("--only", default="", metavar="WORD", help="Only kernels whose name has this in it.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Images at once [default: the processors].")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@STRICT
def kernels(
    where: Path,
    words: tuple[str, ...],
    names: tuple[str, ...],
    against: str | None,
    only: str,
    jobs: int | None,
    form: str,
    strict: bool,
) -> int:
    """Tell what the graphics compiler makes of each kernel of WHERE, and how much of it a card holds at once.

    WHERE: a source (COMPILER WORDS are for its compiler), a tree with a setup.py, a built library, a wheel, or a file
    of SPIR-V or machine code. Exit codes: 0 looked at, 1 worse than --against (with --strict, anything of note), 2 a
    kernel could not be looked at, or there is none.
    """
    import msgspec

    from schema_patch.build.kernels import examine, judge, page, table
    from schema_patch.commands import console
    from schema_patch.report.text import finding_line

    ips = examine.devices(split(names))
    before = judge.read(against) if against else None
    with status("") as step:
        document = examine.run(where, ips, words, jobs or len(os.sched_getaffinity(0)), step, only)
    report = judge.report(document, before, strict=strict)
    if form == "text":
        for line in table.text(document):
            click.echo(line)
        return console.show(report, "text", summary=table.summary(document))
    if form == "html":
        click.echo(page.html(document, report, str(where)))
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
        for finding in report.failed:
            click.echo(finding_line(finding), err=True)
    show_errors(report.errors)
    return report.exit_code
