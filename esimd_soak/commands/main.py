"""argv -> calls -> streams and exit code. Prints for the whole package, together with `live` and `acceptance`.

Exit codes: 0 clean, 1 findings, 2 could not run, not enough seen, not as registered, or not to be trusted. Data to
stdout, prose to stderr.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esimd_soak import __version__
from esimd_soak.model import ToolError, contents

from . import ending, live, scoring
from .help import SETTINGS, Group, examples, width

if TYPE_CHECKING:
    from esimd_soak.judge.analysis import Analysis
    from esimd_soak.judge.compare import Arm
    from esimd_soak.store.table import RunTable

RUNS = click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
KINDS = click.option("--kinds", default="", metavar="KIND,...", help="What counts as a collapse [default: the plan's].")


@click.group(cls=Group, context_settings=SETTINGS, epilog=examples(
    "esimd-soak run plan.toml -o runs/first", "esimd-soak report runs/first --html first.html",
))  # fmt: skip
@click.version_option(__version__)
def esimd_soak() -> None:
    """Is the served model right, under load, for hours?"""


@esimd_soak.command(epilog=examples(
    "esimd-soak report runs/first", "esimd-soak report runs/first --html first.html",
))  # fmt: skip
@RUNS
@KINDS
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write one self-contained HTML page.")
@FORMAT
def report(runs: tuple[Path, ...], kinds: str, page: Path | None, form: str) -> int:
    """Rates with intervals that hold for bursts, speed, clusters, time line, and what the data cannot exclude."""
    from esimd_soak.show import html, text
    from esimd_soak.store import folder, table

    _, found = _read(runs, kinds)
    if page:
        title = f"Soak: {', '.join(str(run['name']) for run in found.runs)}"
        folder.write_whole(page, html.page(found, table.examples(runs), title).encode())
        click.echo(f"wrote {page}", err=True)
    if form == "json":
        findings = [{"code": f.code, "run": f.where, "server": f.server, "message": f.message} for f in found.findings]
        _json({"version": 2, "exit_code": found.exit_code, "findings": findings}, found)
    else:
        for line in text.report(found):
            click.echo(line)
    return found.exit_code


@esimd_soak.command(epilog=examples(
    "esimd-soak power --rate 0.0025 --ratio 1.5 --burst 4", "esimd-soak power --rate 0.0025 --generations 13000",
))  # fmt: skip
@click.option("--rate", type=float, required=True, help="The rate to start from, for example 0.0025.")
@click.option("--ratio", type=float, default=1.5, show_default=True, help="The change to find.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option("--power", "chance", type=float, default=0.8, show_default=True)
@click.option("--generations", type=int, default=0, help="Say what so many an arm can find instead.")
@click.option("--burst", type=float, default=1.0, show_default=True, help="The mean number of collapses in a burst.")
def power(rate: float, ratio: float, alpha: float, chance: float, generations: int, burst: float) -> int:
    """How many generations does a comparison need?"""
    from esimd_soak.judge import clusters, stats

    try:
        effect = clusters.burst_effect(burst)
        need = math.ceil(stats.sample_size(rate, ratio, alpha, chance) * effect)
        other = f"{100 * rate:g} % against {100 * rate * ratio:g} %"
        click.echo(f"{other}: {need:,} generations an arm for power {chance:g} at alpha {alpha:g} (two-sided)")
        if generations:
            click.echo(
                f"{generations:,} an arm find it with a chance of "
                f"{stats.power_of(generations / effect, rate, ratio, alpha):.1%}"
            )
        clean = math.ceil(stats.clean_size(rate) * burst)
        click.echo(f"{clean:,} generations without one event exclude {100 * rate:g} % at 95 %, one-sided")
        if burst > 1:
            click.echo(f"for bursts of {burst:g} on average (1 + Poisson): a design effect of {effect:.2f}")
    except (ValueError, OverflowError) as error:
        raise ToolError(str(error)) from None
    return 0


@esimd_soak.command(epilog=examples(
    "esimd-soak register ab.json -a off -b on --size 13000 --stop size --hypothesis lower",
    "esimd-soak register ab.json -a a -b b --size 9000 --stop looks --looks 3 --hypothesis same",
))  # fmt: skip
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--hypothesis", required=True, help="What is expected, in words.")
@click.option("-a", "a", required=True, help="The first arm: the `name` in its plan.")
@click.option("-b", "b", required=True, help="The second arm.")
@click.option("--size", type=click.IntRange(1), required=True, help="Generations an arm.")
@click.option("--stop", required=True, help="The stopping rule, in words.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option(
    "--test",
    type=click.Choice(["blocks", "two-proportion", "fisher"]),
    default="blocks",
    show_default=True,
    help="The others take collapses as independent, and are never believed beyond the blocks.",
)
@click.option(
    "--looks",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="How often it may be compared, at equal steps up to the size (alpha spending).",
)
@KINDS
def register(target: Path, a: str, b: str, alpha: float, kinds: str, **given: Any) -> int:
    """Say what will be compared before measuring it; `run --registration` writes its hash into the run."""
    import msgspec

    from esimd_soak.judge.registration import Preregistration
    from esimd_soak.store import folder

    if target.exists():
        raise ToolError("this file exists; a registration is never changed", str(target))
    if a == b:
        raise ToolError(f"both arms are named {a}; their plans tell them apart by `name`")
    if not 0 < alpha < 1:
        raise ToolError(f"expected alpha between 0 and 1, found {alpha:g}", "--alpha")
    made = Preregistration(a=a, b=b, alpha=alpha, kinds=_kinds(kinds), **given).sealed()
    folder.write_whole(target, msgspec.json.format(msgspec.json.encode(made), indent=2))
    click.echo(made.digest)
    return 0


@esimd_soak.command(epilog=examples(
    "esimd-soak compare runs/off runs/on --registration before.json", "esimd-soak compare --counts 42/12960 32/13056",
))  # fmt: skip
@click.argument("a", required=False, type=click.Path(path_type=Path))
@click.argument("b", required=False, type=click.Path(path_type=Path))
@click.option("--counts", nargs=2, metavar="K/N K/N", help="Bare counts: --counts 42/12960 32/13056.")
@click.option("--card-a", default="", help="Only this card of A.")
@click.option("--card-b", default="", help="Only this card of B.")
@click.option("--registration", type=click.Path(path_type=Path), help="What was registered before the runs.")
@click.option("--burst", type=float, default=1.0, help="Of bare counts: the mean number of collapses in a burst.")
@KINDS
@FORMAT
def compare(
    a: Path | None,
    b: Path | None,
    counts: tuple[str, str] | None,
    card_a: str,
    card_b: str,
    registration: Path | None,
    burst: float,
    kinds: str,
    form: str,
) -> int:
    """Are two rates different? By blocks, so that a burst counts once. Refuses arms that cannot be compared."""
    from esimd_soak.judge import compare as comparing
    from esimd_soak.judge import registration as registering
    from esimd_soak.show import comparison

    if burst < 1 or not math.isfinite(burst):
        raise click.UsageError(f"a burst has at least one collapse, found {burst:g}")
    if burst > 1 and not counts:
        raise click.UsageError("--burst is for bare counts: runs tell their bursts themselves")
    if counts:
        if a or b or registration:
            raise click.UsageError("bare counts stand alone: no runs and no registration with --counts")
        arms = comparing.counts(" ".join(counts))
    elif a and b:
        arms = (_arm(a, kinds, card_a), _arm(b, kinds, card_b))
    else:
        raise click.UsageError("expected two runs, or --counts K/N K/N")
    registered = registering.read(contents(registration), str(registration)) if registration else None
    verdict = comparing.judge(*arms, registered, burst=burst)
    if form == "json":
        _json(comparison.document(verdict))
    else:
        for line in comparison.lines(verdict):
            click.echo(line)
    return verdict.exit_code


@esimd_soak.command(epilog=examples(
    "esimd-soak merge runs/one runs/two -o runs/both", "esimd-soak merge runs/a runs/b -o runs/ab --same-prompts",
))  # fmt: skip
@RUNS
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The new folder.")
@click.option(
    "--same-prompts", is_flag=True, help="Runs at several servers may have one seed, and so the same prompts."
)
def merge(runs: tuple[Path, ...], output: Path, same_prompts: bool) -> int:
    """Put the runs of several clients of one experiment together."""
    from esimd_soak.store import merge as merging

    click.echo(
        f"{merging.merge(runs, output, same_prompts=same_prompts)} files from {len(runs)} runs in {output}", err=True
    )
    return 0


@esimd_soak.command(epilog=examples(
    "esimd-soak export runs/first -o first.csv", "esimd-soak export runs/off runs/on -o both.parquet",
))  # fmt: skip
@RUNS
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file: .csv, or Parquet.")
def export(runs: tuple[Path, ...], output: Path) -> int:
    """Write every generation to a CSV or Parquet file."""
    from esimd_soak.store import merge as merging

    rows = (merging.table if output.suffix.lower() == ".csv" else merging.parquet)(runs, output)
    click.echo(f"{rows:,} generations in {output}", err=True)
    return 0 if rows else 2


for command in (scoring.score, *live.COMMANDS):
    esimd_soak.add_command(command)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m esimd_soak` and `esimd-soak`."""
    return ending.run(lambda: dispatch(argv))


def dispatch(argv: Sequence[str] | None) -> int:
    arguments = None if argv is None else list(argv)
    if "_ESIMD_SOAK_COMPLETE" in os.environ:
        esimd_soak.main(args=arguments, prog_name="esimd-soak")  # the shell asks for completions; ends the process
    try:
        return int(
            esimd_soak.main(args=arguments, prog_name="esimd-soak", standalone_mode=False, terminal_width=width()) or 0
        )
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:  # what click makes of a reader that has gone
        raise BrokenPipeError from None


def _read(runs: Sequence[Path], kinds: str) -> tuple[RunTable, Analysis]:
    from esimd_soak.judge import analysis
    from esimd_soak.store import table

    read = table.read(runs)
    return read, analysis.analyse(read, _kinds(kinds))


def _arm(run: Path, kinds: str, card: str) -> Arm:
    from esimd_soak.judge import analysis, compare

    read, found = _read([run], kinds)
    return compare.arm(read.metas, found, analysis.sequences(read, found.counted), card)


def _kinds(text: str) -> tuple[str, ...]:
    from esimd_soak.score import KINDS

    wanted = tuple(text.replace(",", " ").split())
    if unknown := set(wanted) - set(KINDS):
        raise ToolError(f"unknown kind {sorted(unknown)[0]}; expected some of {', '.join(KINDS)}", "--kinds")
    return wanted


def _json(document: dict[str, Any], more: object = None) -> None:
    """`more`: a value whose fields stand beside."""
    import msgspec

    click.echo(msgspec.json.encode({**document, **(msgspec.to_builtins(more) or {})}).decode())
