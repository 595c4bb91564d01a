"""`python -m esimd_ops probe`: argv -> run -> table. Prints like cli.py, which it belongs to."""

from __future__ import annotations

import sys

import click

from esimd_ops.probe.question import ProbeAnswer, Question
from schema_patch.commands.console import OPS, selection, show, within
from schema_patch.commands.help import Command, examples
from schema_patch.model import Report

from .options import LIBRARIES, SAMPLES


@click.command(cls=Command, epilog=examples(
    "python -m esimd_ops probe", "python -m esimd_ops probe --namespace mylib --samples samples.py --keep graphs",
))  # fmt: skip
@click.option("--namespace", default="custom_esimd_kernels_vllm", show_default=True, help="Probe torch.ops.NAMESPACE.")
@OPS
@click.option(
    "--device", default="cpu", show_default=True, help="Where to run; on cuda and xpu graphs are replayed too."
)
@LIBRARIES
@SAMPLES
@click.option("--guard", is_flag=True, help="With the guard on.")
@click.option("--keep", metavar="DIR", help="Write the graphs that are wrong to DIR.")
def probe(
    namespace: str,
    ops: tuple[str, ...],
    device: str,
    libraries: tuple[str, ...],
    samples: str,
    guard: bool,
    keep: str | None,
) -> int:
    """See what torch.compile and graph replay make of each operator, in a fresh process for each, caches off.

    Exit code 1 where an operator is silently wrong or a replayed graph is.
    """
    from esimd_ops.probe import run
    from esimd_ops.trials.libraries import expect

    expect(namespace, libraries, samples)
    names = within(selection(ops), namespace) or _all(samples, namespace)
    questions = [Question(namespace, name, device, libraries, samples, guard) for name in names]
    report, answers = run.probe(questions, lambda op: click.echo(f"probing {op}", err=True), keep)
    return _show(report, answers)


def _all(samples: str, namespace: str) -> list[str]:
    """The operators of the table, or those that the samples file names."""
    if not samples:
        from schema_patch.schemas import table

        return list(table.load().entries)
    from esimd_ops.trials.given import named

    return list(named(samples, namespace))


def _show(report: Report, answers: dict[str, ProbeAnswer]) -> int:
    from rich.console import Console
    from rich.table import Table

    programs = list(dict.fromkeys(f"{seen.program}, {seen.stage}" for a in answers.values() for seen in a.seen))
    colours = {"right": "green", "refused": "yellow", "not comparable": "yellow"}
    table = Table("operator", *programs, header_style="bold")
    for op, answer in answers.items():
        cells = {f"{seen.program}, {seen.stage}": seen.outcome for seen in answer.seen}
        table.add_row(op, *(f"[{colours.get(cells.get(p, ''), 'red')}]{cells.get(p, '-')}" for p in programs))
    if answers:
        Console(width=None if sys.stdout.isatty() else 200).print(table)
    return show(report, "text")
