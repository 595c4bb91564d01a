"""argv -> calls -> streams and exit code. `python -m esimd_ops check`.

Exit codes: 0 clean, 1 findings, 2 could not run (or nothing was checked). Data to stdout, prose to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from schema_patch.commands import ending
from schema_patch.commands.console import OPS, known_ops, selection, show, status, within
from schema_patch.commands.help import SETTINGS, Group, examples
from schema_patch.commands.version import VERSION

from .graphs import graphs
from .host import host_build, races
from .kernels import kernels
from .observe import observe
from .options import LIBRARIES, SAMPLES, STRICT
from .probe import probe


@click.group(cls=Group, context_settings=SETTINGS, epilog=examples(
    "python -m esimd_ops check --quick", "python -m esimd_ops probe --namespace mylib --samples samples.py",
))  # fmt: skip
@VERSION
def esimd_ops() -> None:
    """Operators for quantised language models, and checks of any build of them."""


@esimd_ops.command(epilog=examples(
    "python -m esimd_ops check --quick", "python -m esimd_ops check --namespace mylib --samples samples.py",
))  # fmt: skip
@click.option(
    "--namespace",
    default="esimd_ops",
    show_default=True,
    help="Check torch.ops.NAMESPACE. Without --library, its package is imported.",
)
@click.option("--device", type=click.Choice(["cpu", "xpu"]), default="cpu", show_default=True)
@OPS
@click.option("--repeat", type=click.IntRange(min=2), help="Runs on the same inputs [default: 5; 20 with --severe].")
@click.option("--quick", is_flag=True, help="One sample of each operator, eagerly: a first answer.")
@click.option("--severe", is_flag=True, help="Every kind of check with every sample; takes minutes.")
@LIBRARIES
@click.option("--shapes", metavar="SET|SIZES", default="all", show_default=True, help="all, models, or sizes: 8x4x8.")
@SAMPLES
@click.option(
    "--beyond/--published",
    default=None,
    help="Also arguments outside the domain of the published library, which reads past the end or races there "
    "[default: only for esimd_ops].",
)
@click.option("--record", metavar="FILE", help="Write the bits of every output to FILE.")
@click.option("--against", metavar="FILE", help="Compare the bits of every output with those recorded in FILE.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@STRICT
def check(
    *,
    namespace: str,
    ops: tuple[str, ...],
    repeat: int | None,
    quick: bool,
    severe: bool,
    beyond: bool | None,
    record: str | None,
    against: str | None,
    form: str,
    strict: bool,
    **given: Any,
) -> int:
    """Run every operator of a build against its reference: numbers, what it writes and where, repeatability, compiled.

    The libraries are loaded in a child process: one that dies of an operator is a finding.
    """
    from esimd_ops.parity import record as records
    from esimd_ops.parity import supervise
    from esimd_ops.trials import files
    from esimd_ops.trials.libraries import expect
    from esimd_ops.trials.messages import Request
    from schema_patch.schemas import table

    if quick and severe:
        raise click.UsageError("--quick and --severe exclude each other")
    expect(namespace, given["libraries"], given["samples"])
    then = records.read(against) if against else None
    asked = selection(ops) if given["samples"] else known_ops(ops, table.load())
    request = Request(
        **given,
        namespace=namespace,
        operators=tuple(sorted(within(asked, namespace))),
        repeat=repeat or (20 if severe else 5),
        effort="severe" if severe else "quick" if quick else "usual",
        beyond=namespace == "esimd_ops" if beyond is None else beyond,
    )
    with status("checking") as step:
        outcome = supervise.check(request, step)
    now = records.of(outcome, request.device)
    told = records.compare(now, then) if then else ()
    if record:
        files.write(record, now)
    return show(supervise.report(request, outcome, told, strict=strict), form)


for command in (probe, graphs, host_build, races, kernels, observe):
    esimd_ops.add_command(command)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m esimd_ops`."""
    return ending.run(esimd_ops, argv, "python -m esimd_ops")
