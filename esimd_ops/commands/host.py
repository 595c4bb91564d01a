"""`esimd_ops host-build` and `esimd_ops races`: argv -> calls -> streams and exit code. Prints for cli.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esimd_ops.races.order import Order, RaceRun
from schema_patch.commands.console import OPS, selection, show, status, within
from schema_patch.commands.help import Command, examples
from schema_patch.model import ToolError

from .options import LIBRARIES, SAMPLES, STRICT

if TYPE_CHECKING:
    from esimd_ops.host.build import Built


@click.command("host-build", cls=Command, epilog=examples(
    "python -m esimd_ops host-build mylib -o built --checks",
    "python -m esimd_ops host-build mylib -o built --only 'csrc/xpu/*'",
))  # fmt: skip
@click.argument("tree", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Where the libraries go.")
@click.option("--compiler", default="g++", show_default=True, help="g++ or clang++.")
@click.option("--checks", is_flag=True, help="Kernels tell of every access, for `races`; several times slower.")
@click.option(
    "--sanitize",
    multiple=True,
    type=click.Choice(["address", "undefined", "thread", "memory"]),
    help="A build for a sanitizer of the compiler (repeat).",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Only sources whose path in the tree matches (repeat).")
@click.option("-I", "--include", multiple=True, type=click.Path(path_type=Path), help="More folders with headers.")
@click.option("-D", "--define", multiple=True, metavar="NAME[=VALUE]", help="A macro that the tree's build gives.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=2, show_default=True)
def host_build(tree: Path, out: Path, **given: Any) -> int:
    """Compile the .sycl and registration files of a torch extension with ESIMD kernels for the CPU, as they stand.

    Exit code 1 where some sources did not compile; the libraries of the others are made, and what they need of these
    throws when it is called.
    """
    from esimd_ops.host import build

    if given["checks"] and given["sanitize"]:
        raise click.UsageError("--checks and --sanitize exclude each other: both use the compiler's instrumentation")
    if "memory" in given["sanitize"] and "clang" not in given["compiler"]:
        raise click.UsageError("--sanitize memory needs --compiler clang++")
    with status("") as step:
        step(f"building {tree}")
        built = build.build(build.HostBuild(tree=tree, out=out, **given))
    _tell(built, tree, out)
    return 1 if built.failed or built.lost else 0


def _tell(built: Built, tree: Path, out: Path) -> None:
    """Raises ToolError where nothing was built."""
    from esimd_ops.host.build import SAID

    for name, words in built.failed.items():
        did = "does not load" if name.endswith(".so") else "did not compile"
        click.echo(f"{name}: error: {did}: {words}", err=True)
    if built.failed:
        click.echo(
            f"{built.compiled} of {built.of} sources compiled; all that was said of the others: {out / SAID}",
            err=True,
        )
    for name, functions in built.lost.items():
        first = "; ".join(functions[:3]) + (f" and {len(functions) - 3} more" if len(functions) > 3 else "")
        click.echo(f"{name}: no source that compiled defines {first}: called, they throw", err=True)
    for name in built.left_out:
        click.echo(f"{name}: left out: nothing that registers operators needs it", err=True)
    for note in built.notes:
        click.echo(note, err=True)
    for library in built.libraries:
        click.echo(library)
    if not built.libraries:
        raise ToolError("no library could be built", str(tree))
    spaces, modules = ", ".join(built.namespaces) or "none", ", ".join(built.modules) or "none"
    count = "1 library" if len(built.libraries) == 1 else f"{len(built.libraries)} libraries"
    click.echo(f"{count}; namespaces: {spaces}; modules: {modules}", err=True)
    for space in built.namespaces[:1]:
        click.echo(f"PYTHONPATH={out} python -m esimd_ops check --namespace {space} --device cpu", err=True)


@click.command(cls=Command, epilog=examples(
    "PYTHONPATH=built python -m esimd_ops races --namespace mylib --samples samples.py",
    "PYTHONPATH=built python -m esimd_ops races --namespace mylib --card b580",
))  # fmt: skip
@click.option("--namespace", required=True, help="Operators torch.ops.NAMESPACE of a host build.")
@OPS
@click.option(
    "--shapes",
    metavar="SET|SIZES",
    default="decode",
    show_default=True,
    help="decode (the ordinary one), all, models (of served models), or sizes such as 8x4x8.",
)
@SAMPLES
@click.option(
    "--card", "cards", multiple=True, metavar="NAME", help="So many groups at once as this card holds (repeat)."
)
@click.option("--kernels", default="", metavar="FILE", help="With --card: what `kernels --format json` printed.")
@click.option(
    "--registers", type=click.Choice(["128", "256"]), default="128", show_default=True, help="Of a thread, else."
)
@click.option("--schedules", multiple=True, metavar="NAME|WORDS", help="Only these (repeat, or semicolons).")
@LIBRARIES
@click.option("--beyond", is_flag=True, help="Also arguments outside the domain of the published library.")
@click.option("--suppress", metavar="FILE", help="Races known to be harmless, with reasons (TOML).")
@click.option("--reproducer", metavar="FILE", help="Write the smallest case that shows a finding to FILE.")
@click.option("--replay", metavar="FILE", help="Run a reproducer instead.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif", "html"]), default="text", show_default=True
)
@STRICT
def races(
    *,
    namespace: str,
    ops: tuple[str, ...],
    cards: tuple[str, ...],
    registers: str,
    schedules: tuple[str, ...],
    suppress: str | None,
    reproducer: str | None,
    replay: str | None,
    form: str,
    strict: bool,
    **given: Any,
) -> int:
    """Run the operators of a host build under orders of work-groups and work-items, and judge every access once.

    The table says which share of an output was wrong under which schedule; the findings name the source lines.
    """
    from esimd_ops.races import run as work
    from esimd_ops.races.schedules import chosen
    from esimd_ops.races.suppressions import Suppressions
    from esimd_ops.trials.libraries import expect

    order = Order(
        **given,
        namespace=namespace,
        operators=within(selection(ops), namespace),
        schedules=chosen(schedules, cards),
        registers=int(registers),
    )
    if replay:
        from esimd_ops.races import case

        order = case.order_of(replay, order)
    expect(order.namespace, order.libraries, order.samples)
    with status("") as step:
        outcome = work.run(order, step)
    report = work.report(order, outcome, Suppressions.read(suppress) if suppress else Suppressions(), strict=strict)
    if form == "text" and outcome.rows:
        _table(outcome, order)
    if reproducer:
        _write_smallest(reproducer, order, outcome)
    return show(report, form)


def _write_smallest(path: str, order: Order, outcome: RaceRun) -> None:
    from esimd_ops.races import reproduce
    from esimd_ops.trials import files

    if found := reproduce.smallest(order, outcome):
        files.write(path, found)
        click.echo(f"{path}: {found.operator} {found.sizes}, {found.schedule}", err=True)
    else:
        click.echo(f"{path}: not written: nothing was found", err=True)


def _table(outcome: RaceRun, order: Order) -> None:
    from rich.console import Console
    from rich.table import Table

    names = list(order.schedules)
    table = Table("operator", "shape", *names, "seen", header_style="bold")
    for row in outcome.rows:
        cells = [_share(row, name) for name in names]
        kinds = ", ".join(sorted({seen.kind for seen in row.seen})) or ("none" if row.judged else "-")
        table.add_row(row.op, row.label, *cells, kinds)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _share(row: Any, name: str) -> str:
    """The wrong share, and with a card how many groups ran at once of how many."""
    from esimd_ops.races.run import groups

    share = row.wrong[name][0]
    held = f" [dim]{min(row.resident[name], groups(row))}/{groups(row)}" if name in row.resident else ""
    return (f"[red]{share:.1%}" if share else "[green]0") + held
