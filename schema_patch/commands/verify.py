"""The command `verify-schemas`. Prints through console.py; belongs to cli.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from schema_patch.commands import console
from schema_patch.commands.console import TABLES, Reporting, reported, split
from schema_patch.commands.version import VERSION
from schema_patch.model import Report, ToolError

from .help import SETTINGS, Command, examples

if TYPE_CHECKING:
    from schema_patch.schemas.table import Table
    from schema_patch.text.files import Steps
    from schema_patch.verify.gather import Gathered


@click.command(cls=Command, context_settings=SETTINGS, epilog=examples(
    "verify-schemas dist/mylib.whl --require op1,op2 --target bmg",
    "verify-schemas .venv/lib/python3.12/site-packages --strict",
))  # fmt: skip
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--require",
    multiple=True,
    metavar="NAME",
    help="Fail unless this operator is present and right (repeat, or commas).",
)
@click.option(
    "--sycl",
    metavar="MAJOR",
    help="The libsycl.so major version that binaries must need [default: what torch needs, the one beside them or else "
    "the installed one; 8 without].",
)
@click.option(
    "--target",
    multiple=True,
    metavar="DEVICE",
    help="Fail unless every kernel has code for this device, or SPIR-V: bmg-g31, pvc, 20.2, bmg … (repeat, or commas).",
)
@click.option(
    "--against",
    metavar="OLDER",
    help="Only compare: what differs from this older build. Exit code 0 if nothing does, 1 if something does.",
)
@click.option(
    "--expect",
    multiple=True,
    metavar="KIND",
    help="With --against: meant (schemas, operators, kernels, targets, runtime, symbols, libraries).",
)
@click.option("--source", metavar="DIR", help="Hold the schemas against those that this C++ tree registers.")
@click.option("--parity", is_flag=True, help="Also run what was found against references (python -m esimd_ops check).")
@click.option(
    "--device", type=click.Choice(["cpu", "xpu"]), default="cpu", show_default=True, help="With --parity: where to run."
)
@click.option(
    "--load", is_flag=True, help="Also let torch load each library in a child process: does it register the same?"
)
@click.option("--all", "include_all", is_flag=True, help="Look into the platform's own packages (torch, …) too.")
@TABLES
@reported
@VERSION
def verify_schemas(
    paths: tuple[str, ...],
    require: tuple[str, ...],
    sycl: str | None,
    target: tuple[str, ...],
    against: str | None,
    expect: tuple[str, ...],
    source: str | None,
    parity: bool,
    device: str,
    load: bool,
    include_all: bool,
    own: tuple[str, ...],
    how: Reporting,
) -> int:
    """Judge the operators in installed binaries. Only --load and --parity load and run them, in child processes.

    PATH is site-packages, a directory, a wheel, a library, an sdist, an image as `docker save` or OCI writes it, or `-`
    for any of them on standard input. Exit codes: 0 clean, 1 findings, 2 could not run, or nothing was verified.
    """
    if load or parity:
        console.needs_linux("--load" if load else "--parity")
    summary = ""
    with console.progress("reading") as step:
        if against and (parity or load):
            raise click.UsageError("--parity and --load run one build; leave out --against")
        if against:
            report, summary = _compare(paths, against, split(expect), include_all, step)
        else:
            known = console.tables(own)
            asked = {"require": split(require), "sycl": sycl, "devices": split(target), "include_all": include_all}
            report = _survey(paths, known, source, device if parity else None, step, load=load, **asked)
    title = f"verify-schemas {' '.join(paths)}"
    return how.show(how.count(report), title, summary=summary, asked=() if against else paths)


def _survey(
    paths: tuple[str, ...], known: Table, source: str | None, parity_device: str | None, step: Steps, **asked: Any
) -> Report:
    from schema_patch.installed import caches
    from schema_patch.schemas import table
    from schema_patch.verify import parity, survey

    report, found = survey.survey_and_facts(paths, table=known, progress=step, expect=step.expect, **asked)
    more = [_provenance(found, source, step)] if source else []
    more.append(Report(findings=tuple(caches.stale(report.checked, known.all_namespaces, os.environ))))
    more += parity.check(found.judged, table.load(), parity_device, step) if parity_device else ()
    return report.joined(*more)


def _provenance(found: Gathered, source: str, step: Steps) -> Report:
    from schema_patch.schemas import table
    from schema_patch.source import tree
    from schema_patch.verify import provenance

    units, errors = tree.read([source], table.load(), step)
    if not errors and not any(unit.operators for unit in units):
        errors = [ToolError("expected C++ that registers operators, found none", source)]
    return provenance.check(found.judged, units).joined(Report(errors=tuple(errors)))


def _compare(
    paths: tuple[str, ...], against: str, expect: tuple[str, ...], include_all: bool, step: Steps
) -> tuple[Report, str]:
    from schema_patch.verify import compare
    from schema_patch.verify.gather import gather

    kinds = [kind.value for kind in compare.Aspect]
    for word in expect:
        if word not in kinds:
            raise click.BadParameter(f"{word} is none of {', '.join(kinds)}", param_hint="--expect")
    ours, older = (
        gather(side, include_all=include_all, deep=True, progress=step, expect=step.expect)
        for side in (paths, [against])
    )
    report = compare.compare(ours.by_key(), older.by_key(), expect=expect, errors=[*ours.errors, *older.errors])
    return report, compare.summary(report)
