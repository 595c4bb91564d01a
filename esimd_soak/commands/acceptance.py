"""`esimd-soak acceptance`: sources, live load or the matrix -> lines and exit code."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from esimd_soak.judge import acceptance as accepting
from esimd_soak.judge import drafts
from esimd_soak.judge.acceptance import Acceptance
from esimd_soak.judge.drafts import Counts
from esimd_soak.model import ToolError


def dispatch(sources: Sequence[str], output: Path, given: dict[str, Any]) -> int:
    if not (math.isfinite(given["min_rate"]) and math.isfinite(given["max_drop"])):
        raise click.UsageError("--min-rate and --max-drop: expected finite numbers")
    if given["matrix_path"]:
        return _matrix(given["matrix_path"], output)
    if given["plan_path"]:
        return _live(given["plan_path"], given["loads"], output, given["min_rate"])
    if given["baseline"] and given["candidate"]:
        return _compare(given["baseline"], given["candidate"], given["max_drop"])
    if not sources or given["baseline"] or given["candidate"]:
        raise click.UsageError("expected a SOURCE, or --baseline with --candidate, or --plan, or --matrix")
    codes = []
    for source in sources:
        verdict = _source(source, given["before"] or "")
        _show(source, verdict)
        codes.append(_judge(verdict, given["min_rate"]))
    return max(codes)


def _text(path: str) -> str:
    from esimd_soak.judge.rescore import open_input

    with open_input(path) as file:
        return file.read().decode("utf-8", "replace")


def _source(after: str, before: str = "") -> Acceptance:
    try:
        return accepting.diagnose(drafts.read(_text(after), _text(before) if before else ""))
    except ToolError as error:
        raise ToolError(error.message, error.where or after) from None


def _show(name: str, verdict: Acceptance) -> None:
    for line in accepting.lines(name, verdict):
        click.echo(line)


def _judge(found: Acceptance, least: float) -> int:
    click.echo(f"{found.kind}: {found.meaning}")
    if found.whole.rate < least:
        click.echo(f"below the limit: {found.whole.rate:.2%} of {least:.2%}")
    return found.exit_code or int(found.whole.rate < least)


def _compare(baseline: str, candidate: str, max_drop: float) -> int:
    a, b = (_source(after, before) for before, _, after in (words.rpartition(",") for words in (baseline, candidate)))
    _show("baseline", a)
    _show("candidate", b)
    findings = accepting.compare(a, b, max_drop, candidate.rpartition(",")[2])
    for finding in findings:
        click.echo(f"{finding.where}: error: {finding.code} {finding.message}")
    if not findings:
        click.echo("no fall beyond the limit")
    return int(bool(findings))


def _live(path: str, loads: str, output: Path, least: float) -> int:
    from esimd_soak import plan
    from esimd_soak.experiments import matrix
    from esimd_soak.load.run import Run

    base = plan.load(path)
    if len(base.server) != 1:
        raise ToolError(f"expected one server, found {len(base.server)}: each has its own counters", path)
    steps = _steps(loads) or [base.concurrency]
    found = list[Counts]()
    for step in steps:
        made = msgspec.structs.replace(base, concurrency=step)
        place = output / f"concurrency-{step}"
        counts = asyncio.run(matrix.around(base.server[0].url, Run(made, place).go)) or _told(place)
        if not counts:
            click.echo(f"nothing measured at {step} in flight: no token was drafted, or nothing tells", err=True)
            return 2
        _show(f"{step} in flight", accepting.diagnose(counts))
        found += [replace(one, load=step) for one in counts]
    return _judge(accepting.diagnose(found), least)


def _steps(text: str) -> list[int]:
    words = [step.strip() for step in text.split(",") if step.strip()]
    if wrong := [step for step in words if not step.isdecimal() or not 0 < int(step[:9]) < 10**6]:
        raise ToolError(f"expected numbers of requests in flight, such as 1,48, found {wrong[0]}", "--loads")
    return [int(step) for step in words]


def _told(place: Path) -> list[Counts]:
    """What the answers themselves told of their drafts."""
    from esimd_soak.store import table

    groups = table.read([place]).groups
    drafted = sum(group.drafted for group in groups)
    return [drafts.of_replies(sum(group.accepted for group in groups), drafted)] if drafted else []


def _matrix(path: str, output: Path) -> int:
    from esimd_soak.experiments import matrix

    rows = matrix.run(matrix.load(path), output, lambda words: click.echo(words, err=True))
    for line in accepting.table(rows):
        click.echo(line)
    verdicts = [row.verdict for row in rows if row.verdict]
    for row in rows:
        if row.verdict and row.verdict.kind != "healthy":
            click.echo(f"{row.run} ({row.mode}): {row.verdict.kind}: {row.verdict.meaning}")
    if len(verdicts) < len(rows):
        click.echo("a mode drafted nothing: nothing measured there", err=True)
        return 2
    return max(one.exit_code for one in verdicts)
