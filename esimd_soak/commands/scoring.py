"""`esimd-soak score`: text that exists -> lines and exit code."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from esimd_soak.model import ToolError

from .help import Command, examples

if TYPE_CHECKING:
    from esimd_soak.judge.rescore import Scored
    from esimd_soak.score import Limits

LEAST = 0.5
"""Of the requests of a bench result, so many must have been answered."""


@click.command(cls=Command, epilog=examples(
    "esimd-soak score completions.jsonl", "esimd-soak score bench.json --rule origin --format json",
))  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--run",
    type=click.IntRange(min=2),
    default=80,
    show_default=True,
    help="Longest run of one character that is still no collapse, plus 1.",
)
@click.option(
    "--rule",
    type=click.Choice(["measures", "origin"]),
    default="measures",
    show_default=True,
    help="What makes a text degenerate: every measure, or the longest run alone, as in the origin reports.",
)
@click.option("--text", "plain", is_flag=True, help="The files are plain text, a generation a line.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def score(files: tuple[str, ...], run: int, rule: Any, plain: bool, form: str) -> int:
    """Score text you already have: JSONL of completions, or results of `vllm bench serve`. `-` is stdin."""
    from esimd_soak.score import Limits

    if len({os.path.realpath(name) if name != "-" else name for name in files}) < len(files):
        raise click.UsageError("a file is named twice: its generations would count twice")
    tally, errors = Tally(), []
    for name in files:
        try:
            _file(name, Limits(run=run, rule=rule), plain, form, tally)
        except ToolError as error:
            errors.append(error)
    for trouble in errors:
        click.echo(str(trouble), err=True)
    return tally.end(form, bool(errors))


@dataclass(slots=True)
class Tally:
    total: int = 0
    collapsed: int = 0
    failed: int = 0
    """Requests without an answer: no generations."""
    kinds: Counter[str] = field(default_factory=Counter)

    def end(self, form: str, errors: bool) -> int:
        from esimd_soak.judge.part import rate

        if not self.total:
            click.echo("nothing measured: no generation found", err=True)
            return 2
        told = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.kinds.items()))
        words = rate(self.collapsed, self.total).words()
        click.echo(f"{words}; {told}" if told else words, err=form == "json")
        missing = self.failed > LEAST * (self.total + self.failed)
        if self.failed:
            seen = (
                f"of {self.total + self.failed:,} requests, {self.failed:,} failed or were withheld: they say nothing"
            )
            click.echo(("NOT ENOUGH SEEN: " if missing else "note: ") + seen, err=True)
        if errors:
            return 2
        return 1 if self.collapsed else 2 * missing


def _file(name: str, limits: Limits, plain: bool, form: str, tally: Tally) -> None:
    from esimd_soak.judge import rescore

    with rescore.open_input(name) as file:
        before = tally.total
        for one in rescore.scored(file, name, limits, plain=plain):
            _one(one, form, tally)
        if tally.total == before:
            raise ToolError("no generation found in it", name)


def _one(one: Scored, form: str, tally: Tally) -> None:
    if one.score is None:
        tally.failed += 1
        return
    tally.total += 1
    if one.score:
        return
    tally.collapsed += 1
    tally.kinds.update(one.score.kinds)
    if form == "json":
        import msgspec

        line = {"place": one.place, **msgspec.to_builtins(one.score), "text": one.text}
        click.echo(msgspec.json.encode(line).decode())
    else:
        click.echo(f"{one.place}: {', '.join(one.score.kinds)}: {one.score.words()}: {one.text[-60:]!r}")
