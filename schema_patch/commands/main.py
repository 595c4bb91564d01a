"""argv -> calls -> streams and exit code. The commands of `schema-patch` that work on C++ source.

Exit codes: 0 clean, 1 findings, 2 could not run (or nothing was verified). Data to stdout, prose to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from schema_patch.commands.console import (
    FORMAT,
    OPS,
    TABLES,
    Reporting,
    known_ops,
    progress,
    reported,
    show_errors,
    tables,
)
from schema_patch.model import ToolError
from schema_patch.report.text import one_line

from . import audit, build, ending, installed, serving, sources
from .changes import Changes
from .help import SETTINGS, Group, examples
from .verify import verify_schemas
from .version import VERSION

PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
LOAD = click.option("--load", is_flag=True, help="Installed: torch loads the new library before it takes its place.")
WHEEL_OUT = click.option("--wheel-out", metavar="DIR", help="Where the changed copy of a wheel goes.")
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
@TABLES
@reported
def check(paths: tuple[str, ...], ops: tuple[str, ...], own: tuple[str, ...], how: Reporting) -> int:
    """Judge the operators that a source tree registers. Writes nothing."""
    from schema_patch.report import people
    from schema_patch.source import patch, tree

    known = tables(own)
    wanted = known_ops(ops, known)
    with progress("reading") as tell:
        units, errors = tree.read(paths, known, tell)
        findings, more = tree.read_python(paths, patch.gone(units, wanted), tell)
        registered, wrong, unread = tree.registered_in_python(paths, known, wanted, tell)
    told = {str(error) for error in more}
    errors += [*more, *(error for error in unread if str(error) not in told)]
    report = how.count(patch.report(units, wanted, errors, [*findings, *wrong], registered))
    code = how.show(report, f"schema-patch check {' '.join(paths)}")
    for step in people.in_source(report, paths) if how.form == "text" else ():
        click.echo(step, err=True)
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
@TABLES
@LOAD
@WHEEL_OUT
@DIFF
@FORMAT
def apply(
    paths: tuple[str, ...],
    ops: tuple[str, ...],
    own: tuple[str, ...],
    returns: str,
    infer: bool,
    load: bool,
    wheel_out: str | None,
    diff: bool,
    form: str,
) -> int:
    """Write (a!) where an operator writes; nothing else changes.

    PATH is a source tree or file; or what is installed: a library, a package or site-packages folder, a wheel. There
    the texts of the schemas are changed in place, without a compiler.
    """
    return _rewrite(paths, ops, own, load, wheel_out, diff, form, returns, infer)


@schema_patch.command(epilog=examples("schema-patch strip --diff csrc", "schema-patch strip --ops esimd_rms_norm csrc"))
@PATHS
@OPS
@TABLES
@LOAD
@WHEEL_OUT
@DIFF
def strip(
    paths: tuple[str, ...], ops: tuple[str, ...], own: tuple[str, ...], load: bool, wheel_out: str | None, diff: bool
) -> int:
    """Take the write annotations of known operators away: the control build of an experiment."""
    return _rewrite(paths, ops, own, load, wheel_out, diff)


def _rewrite(
    paths: tuple[str, ...],
    ops: tuple[str, ...],
    own: tuple[str, ...],
    load: bool,
    wheel_out: str | None,
    diff: bool,
    form: str = "text",
    returns: str = "",
    infer: bool = False,
) -> int:
    """`apply`, and without `returns` `strip`, of what is installed and of sources."""
    if diff and form != "text":
        raise click.UsageError("--diff shows a diff: leave --format out")
    built, trees = installed.told_apart(paths)
    if built and returns == "void":
        raise click.UsageError(f"--returns void: {installed.NO_VOID}: {built[0]}")
    if built and infer:
        raise click.UsageError(f"--infer reads sources, and this is installed: {built[0]}")
    known = tables(own)
    code = installed.rewrite(built, known, ops, Changes(diff, form), load, wheel_out, bool(returns)) if built else 0
    if not trees:
        return code
    inferred = audit.inferred(trees, known) if infer else None
    return max(code, sources.rewrite(trees, known, ops, Changes(diff, form), returns, inferred))


@schema_patch.command(epilog=examples("schema-patch revert csrc", "schema-patch revert mylib otherlib"))
@PATHS
def revert(paths: tuple[str, ...]) -> int:
    """Give back the bytes from before apply or strip, from the journal in each PATH."""
    from schema_patch.installed.kind import is_installed
    from schema_patch.source import plans

    restored: list[str] = []
    errors: list[ToolError] = []
    for path in paths:
        try:
            found, failed = (installed.revert if is_installed(path) else plans.revert)(path)
        except ToolError as error:
            found, failed = [], [error]
        restored += found
        errors += failed
    for name in restored:
        click.echo(one_line(f"reverted {name}"))
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
