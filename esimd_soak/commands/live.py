"""The commands that talk to a live server: argv -> calls -> streams and exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esimd_soak.model import ToolError, contents

from .help import Command, examples

if TYPE_CHECKING:
    from esimd_soak.plan import Plan


def _seed(text: str) -> int | str:
    try:
        return text if text == "none" else int(text)
    except ValueError:
        raise click.UsageError(f"--seed: expected a whole number or none, found {text}") from None


def _goodput(text: str) -> dict[str, float]:
    """`ttft:500,tpot:50` -> the keys of the plan's table."""
    found = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        try:
            found[f"{name.strip()}_ms"] = float(value)
        except ValueError:
            raise click.UsageError(f"--goodput: expected such as ttft:500,tpot:50 (ms), found {part}") from None
    return found


@click.command(cls=Command, epilog=examples(
    "esimd-soak run plan.toml -o runs/first",
    "esimd-soak run --url http://localhost:8000 --concurrency 8 --seconds 600",
))  # fmt: skip
@click.argument("plan", required=False)
@click.option("--url", multiple=True, help="A server (repeat for several); instead of, or over, the plan's.")
@click.option("--api", type=click.Choice(["completions", "chat"]), default=None)
@click.option("--concurrency", type=click.IntRange(1), help="Requests in flight at each server; with --rate, at most.")
@click.option("--rate", type=float, help="Requests a second that arrive at each server, however many are in flight.")
@click.option("--arrivals", type=click.Choice(["poisson", "constant"]), help="How they arrive.  [default: poisson]")
@click.option("--ramp", type=float, help="Seconds over which the load grows to its height.")
@click.option("--batches", type=click.IntRange(1), help="So many back-to-back batches at each server.")
@click.option("--max-tokens", type=click.IntRange(1))
@click.option("--warmup", type=click.IntRange(0), help="Generations a server that count in no rate.")
@click.option(
    "--seed",
    type=_seed,
    metavar="N|none",
    help="Of prompts and requests; none: requests carry no seed, as production's do.",
)
@click.option(
    "--goodput",
    type=_goodput,
    metavar="NAME:MS,...",
    help="Limits of a request served well: ttft:500,tpot:50,latency:9000.",
)
@click.option("--seconds", type=float, help="Stop after this long.")
@click.option("--generations", type=click.IntRange(1), help="Stop after so many at each server.")
@click.option("--collapses", type=click.IntRange(1), help="Stop at so many collapses.")
@click.option("--logprobs", is_flag=True, help="Ask for logprobs: a silent NaN becomes an error or a NaN one sees.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("soak-run"), show_default=True)
@click.option(
    "--registration", type=click.Path(path_type=Path), help="The registered comparison that this run belongs to."
)
def run(plan: str | None, output: Path, registration: Path | None, **given: Any) -> int:
    """Load servers, score every generation, watch for trouble. Given an existing output folder, goes on with it."""
    import asyncio

    from esimd_soak import plan as planning
    from esimd_soak.judge import analysis
    from esimd_soak.load.run import Run
    from esimd_soak.show import text
    from esimd_soak.store import table

    from . import progress

    made, sealed = _registered(registration, _plan(plan, given), output)
    for warning in planning.warnings(made):
        click.echo(f"warning: {warning}", err=True)
    soak = Run(made, output, sealed)
    reason = asyncio.run(soak.go(progress.terminal() if sys.stderr.isatty() else progress.lines()))
    if sys.stderr.isatty():
        click.echo(err=True)
    found = analysis.analyse(table.read([output]))
    for line in text.report(found):
        click.echo(line)
    click.echo(f"ended: {reason}; results in {output}", err=True)
    return 2 if soak.interrupted else found.exit_code


def _plan(path: str | None, given: dict[str, Any]) -> Plan:
    from esimd_soak import plan as planning

    changes = {key: value for key, value in given.items() if value not in (None, ()) and value is not False}
    urls, api = changes.pop("url", ()), {"api": changes.pop("api")} if "api" in changes else {}
    if urls:
        changes["server"] = [{"url": url, **api} for url in urls]
    if stop := {key: changes.pop(key) for key in ("seconds", "generations", "collapses") if key in changes}:
        changes["stop"] = stop
    if path:
        return planning.load(path, **changes)
    if not urls:
        raise click.UsageError("expected a plan, or --url of a server")
    return planning.make(changes, "the command line")


def _registered(path: Path | None, plan: Plan, output: Path) -> tuple[Plan, dict[str, Any] | None]:
    """The plan, bound to what was registered: by this file, or of the run that goes on."""
    import msgspec

    from esimd_soak.judge import registration
    from esimd_soak.store import folder

    begun = folder.read_meta(output).registration if (output / "meta.json").exists() else None
    if path is None:
        found, where = registration.of(begun), str(output)
    else:
        found, where = registration.read(contents(path), str(path)), str(path)
    if found is None:
        return plan, None
    try:
        return registration.bound(found, plan), dict(msgspec.to_builtins(found))
    except ToolError as error:
        raise ToolError(error.message, where) from None


@click.command(cls=Command, epilog=examples(
    "esimd-soak acceptance bench.json", "esimd-soak acceptance --plan plan.toml --loads 1,8,32",
))  # fmt: skip
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option("--before", help="A /metrics page from before the workload; SOURCE is then the one from after it.")
@click.option("--baseline", help="What the candidate is held against: a source, or BEFORE,AFTER.")
@click.option("--candidate", help="A source, or BEFORE,AFTER.")
@click.option(
    "--max-drop", default=0.05, show_default=True, help="How far the rate, and each position, may fall (absolute)."
)
@click.option("--min-rate", default=0.0, help="The least acceptance rate, 0 to 1.")
@click.option("--plan", "plan_path", help="Load live servers by this plan, with the counters read around it.")
@click.option("--loads", default="", metavar="N,N...", help="With --plan: at these concurrencies, one after the other.")
@click.option(
    "--matrix", "matrix_path", help="Launch eager, compiled and compiled with graphs by this file; print the table."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("soak-acceptance"), show_default=True)
def acceptance(sources: tuple[str, ...], output: Path, **given: Any) -> int:
    """Speculative decoding: rate, length, positions; a collapse is called what it is.

    SOURCE is a `vllm bench serve` result or console output, a server log with SpecDecoding lines, or a /metrics page.
    """
    from . import acceptance as cli_acceptance

    return cli_acceptance.dispatch(sources, output, given)


@click.command(cls=Command, epilog=examples(
    "esimd-soak agree http://a:8000 http://b:8000",
    "esimd-soak agree http://a:8000 http://b:8000 --prompts 100 --min-agree 0.95",
))  # fmt: skip
@click.argument("a", metavar="URL_A")
@click.argument("b", metavar="URL_B")
@click.option("--prompts", "count", type=click.IntRange(1), default=20, show_default=True)
@click.option("--max-tokens", type=click.IntRange(1), default=128, show_default=True)
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True)
@click.option("--api", type=click.Choice(["completions", "chat"]), default="completions", show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--min-agree", type=click.FloatRange(0, 1), default=0.0, help="Exit 1 below this share.")
def agree(a: str, b: str, count: int, max_tokens: int, concurrency: int, api: str, seed: int, min_agree: float) -> int:
    """The same greedy prompts on two servers: how many agree, and where the others part."""
    import asyncio

    from esimd_soak import plan as planning
    from esimd_soak.experiments import agree as agreement

    servers = [{"url": a, "name": "A", "api": api}, {"url": b, "name": "B", "api": api}]
    keys = {"max_tokens": max_tokens, "concurrency": concurrency, "seed": seed, "stop": {"generations": count}}
    greedy = {"temperature": 0.0, "prompt_lengths": "8-64"}
    made = planning.make({"server": servers, **keys, **greedy}, "the command line")
    found, control = asyncio.run(agreement.measure(made))
    for line in agreement.lines(found, control):
        click.echo(line, err=line.startswith(("warning:", "error:")))
    if found.prompts < made.judged * count:
        click.echo(f"NOT ENOUGH SEEN: both answered {found.prompts} of {count} prompts", err=True)
        return 2
    return int(found.agree < min_agree * found.prompts)


@click.command(cls=Command, epilog=examples(
    "esimd-soak guard guard.toml", "esimd-soak guard --show alerts",
))  # fmt: skip
@click.argument("plan", required=False)
@click.option(
    "--show", type=click.Choice(["dashboard", "alerts"]), help="Print the Grafana dashboard or the alert rules."
)
def guard(plan: str | None, show: str | None) -> int:
    """Run beside production: score canaries and real text, expose metrics, act on a confirmed collapse."""
    import asyncio

    from esimd_soak.experiments import guard as guarding

    if show:
        name = {"dashboard": "grafana.json", "alerts": "alerts.yml"}[show]
        click.echo((Path(__file__).parents[1] / "assets" / name).read_text("utf-8"), nl=False)
        return 0
    if not plan:
        raise click.UsageError("expected a plan with a [guard] table, or --show")
    made, rules = guarding.load(plan)
    click.echo(f"guarding {', '.join(s.name for s in made.server)}; metrics on http://{rules.listen}/metrics", err=True)
    asyncio.run(guarding.CardGuard(made, rules).go())
    return 0


COMMANDS = [run, acceptance, agree, guard]
