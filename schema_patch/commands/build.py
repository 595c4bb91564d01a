"""The commands `doctor` and `rebuild`. Print like cli.py, which they belong to."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from schema_patch.commands import console
from schema_patch.model import Severity, Verdict

from .help import Command, examples

if TYPE_CHECKING:
    from schema_patch.build.doctor import Diagnosis
    from schema_patch.build.toolchain import Facts
    from schema_patch.text.files import Steps

PYTHON = click.option(
    "--python",
    default=sys.executable,
    metavar="PROGRAM",
    help="The interpreter whose torch is built against  [default: the one that runs this].",
)
PURPOSE = click.option(
    "--for",
    "purpose",
    type=click.Choice(["auto", "xpu", "bmg", "host"]),
    default="auto",
    show_default=True,
    help="xpu: SYCL extensions by icpx. bmg: the same by the kit's own compiler. host: C++ extensions by g++.",
)
MARKS = {"error": "✗", "warning": "!", "note": "✓"}


@click.command(cls=Command, epilog=examples("schema-patch doctor mylib", "schema-patch doctor --for bmg --format json"))
@click.argument("source", metavar="[TREE]", required=False, type=click.Path(exists=True, file_okay=False))
@PYTHON
@PURPOSE
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(source: str | None, python: str, purpose: str, form: str) -> int:
    """Look at the toolchain before an hour is lost: what is installed, what is wrong, what fixes it.

    With TREE, for what `rebuild TREE` would do; else for a build by hand. Exit codes: 0 nothing in the way, 1 a build
    would fail or give a wrong library, 2 the interpreter cannot be asked.
    """
    console.needs_linux("doctor")
    from schema_patch.schemas import table

    tree = Path(source) if source else None
    with console.progress("looking at compilers and caches"):
        facts, purpose, lines = _equipped(tree, python, purpose, namespaces=sorted(table.load().all_namespaces))
    if form == "json":
        click.echo(_json(facts, purpose, lines))
    else:
        click.echo(f"for {purpose}, with {facts.interpreter.executable} (Python {facts.interpreter.version})")
        show(lines)
    return 1 if refusals(lines) else 0


def show(lines: Sequence[Diagnosis], *, err: bool = False) -> None:
    """Each line: what was found, why it matters, what fixes it."""
    colours = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "green"}
    for line in lines:
        mark = click.style(MARKS[line.severity.value], fg=colours[line.severity])
        click.echo(f"{mark} {line.check}: {line.found}", err=err)
        if line.why:
            click.echo(f"    why: {line.why}", err=err)
        if line.fix:
            click.echo(f"    fix: {line.fix}", err=err)


def refusals(lines: Sequence[Diagnosis]) -> list[Diagnosis]:
    return [line for line in lines if line.severity is Severity.ERROR]


def _json(facts: Facts, purpose: str, lines: Sequence[Diagnosis]) -> str:
    import msgspec

    document = {"version": 1, "for": purpose, "lines": lines, "facts": facts}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


@click.command(cls=Command, epilog=examples(
    "schema-patch rebuild mylib --out rebuilt", "schema-patch rebuild mylib --for bmg --returns void --control",
))  # fmt: skip
@click.argument("source", metavar="TREE", type=click.Path(exists=True, file_okay=False))
@click.option("--out", default="rebuilt", show_default=True, metavar="DIR", help="Where the wheel goes, once verified.")
@click.option(
    "--returns",
    type=click.Choice(["alias", "void"]),
    default="alias",
    show_default=True,
    help="What an operator that hands its output back returns: see `apply`.",
)
@click.option(
    "--arch", metavar="DEVICE", help="What an xpu build compiles for, as TORCH_XPU_ARCH_LIST  [default: bmg]."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Compilers at once  [default: what memory allows].")
@click.option("--control", is_flag=True, help="Also build the tree as it is, by the same toolchain: DIR/control.")
@click.option(
    "--compiler",
    type=click.Choice(["auto", "icpx", "kit"]),
    default="auto",
    show_default=True,
    help="Who compiles SYCL: icpx where one of the right release is found, else the kit's own driver.",
)
@PYTHON
@PURPOSE
def rebuild(
    source: str,
    out: str,
    returns: str,
    arch: str | None,
    jobs: int | None,
    control: bool,
    compiler: str,
    python: str,
    purpose: str,
) -> int:
    """Patch a copy of TREE, build its wheel, verify the wheel, and only then put it into DIR.

    TREE is only read. DIR gets the wheel, build.json (what went in and came out), patch.diff and build.log; the log is
    kept whatever happens. Exit codes: 0 verified, 1 the wheel is not what it should be, 2 could not be built.
    """
    console.needs_linux("rebuild")
    from schema_patch.build import rebuild as course
    from schema_patch.build import record
    from schema_patch.report import people
    from schema_patch.schemas import table
    from schema_patch.schemas.annotate import Returns

    tree, results = Path(source), Path(out)
    facts, purpose, lines = _equipped(tree, python, purpose, compiler, arch, jobs)
    show([line for line in lines if line.severity is not Severity.NOTE], err=True)
    if refusals(lines):
        message = f"nothing was built: what is marked {MARKS['error']} is in the way of a build for {purpose}"
        click.echo(message, err=True)
        return 2
    commit = record.commit(tree)
    settings = course.settings(facts, python, purpose, record.epoch(commit, os.environ))
    devices = console.split([settings.arch])
    job = course.Job(tree, results, Returns(returns), settings, devices, control, course.runtime_of(facts))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what a CI sends must end the compilers as ctrl-C does
    with course.workspace(results) as work:
        if purpose == "bmg":
            job = course.with_own_compiler(job, work, facts)
        result = course.run(job, work, table.load(), _watch)
        # A library's findings are all of one place: where one counts, none is left out.
        code = console.show(result.report, "text", quiet={Verdict.NEEDS_GUARD} if result.report else ())
        if result.wheel:
            for path in course.publish(result, results, record.record(job, result, facts, purpose, commit)):
                click.echo(path)
        else:
            for step in people.in_source(result.report, [source]):
                click.echo(step, err=True)
            log = f", and {results / 'build.log'}" if (results / "build.log").is_file() else ""
            click.echo(f"no wheel: see above{log}", err=True)
    return code


def _equipped(
    tree: Path | None,
    python: str,
    asked: str,
    compiler: str = "auto",
    arch: str | None = None,
    jobs: int | None = None,
    namespaces: Sequence[str] = (),
) -> tuple[Facts, str, Sequence[Diagnosis]]:
    """What a build will meet, what it is for, and what doctor says of that. Without a tree: a build by hand.

    For a tree, and by the kit's own compiler, what is compiled for and by how many at once is settled here.
    """
    import msgspec

    from schema_patch.build import doctor as checks
    from schema_patch.build import toolchain

    given = dict(os.environ)
    if tree or asked == "bmg":
        given["TORCH_XPU_ARCH_LIST"] = arch or given.get("TORCH_XPU_ARCH_LIST") or checks.toolchain().arch
    facts = toolchain.gather(python, given, namespaces)
    purpose = checks.settled(facts, asked, compiler, sycl=tree is not None and toolchain.asks_for_sycl(tree))
    if tree:
        number = str(jobs or given.get("MAX_JOBS") or checks.fitting_jobs(facts, purpose))
        facts = msgspec.structs.replace(facts, environment={**facts.environment, "MAX_JOBS": number})
    return facts, purpose, checks.examine(facts, purpose)


@contextmanager
def _watch(verb: str) -> Iterator[Steps]:
    click.echo(f"{verb} …", err=True)
    with console.progress(verb) as steps:
        yield steps
