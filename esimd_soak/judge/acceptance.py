"""Speculative decoding: what Counts say. Pure.

A verdict is of the whole, of each engine, of the stretches of time that intervals tell, and of each load: what is well
on the whole may be dead in a part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esimd_soak.model import Finding, ToolError

from . import stats
from .drafts import Counts

NONE, WELL = 0.05, 0.30
"""Acceptance at a position under the first is as good as none, from the second on is fine."""
ENOUGH = 100
"""Draft tokens; of fewer nothing is said."""
CERTAIN = 1e-9
"""The p below which a stretch of time is called dead: a log has many."""
FEW = "too few drafts"
COLLAPSED = (
    "collapse", "collapse of an engine", "collapse in time", "later positions collapse", "falls with load",
    "falls with few",
)  # fmt: skip


def total(parts: Sequence[Counts]) -> Counts:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def in_time(intervals: Sequence[Counts]) -> Counts:
    """The total of intervals in their order, with what became of it, and of each engine, in time."""
    whole = total(intervals)
    engines: dict[str, list[Counts]] = {}
    for engine, own in (part for one in intervals for part in one.engines):
        engines.setdefault(engine, []).append(own)
    each = tuple((engine, in_time(own)) for engine, own in engines.items())
    return replace(whole, engines=each, course=_course(intervals, whole))


def _course(intervals: Sequence[Counts], whole: Counts) -> str:
    ends, sums = list[int](), list[Counts]()  # of stretches with enough drafts each
    for number, one in enumerate(intervals):
        if sums and sums[-1].draft_tokens < ENOUGH:
            ends[-1], sums[-1] = number, sums[-1] + one
        else:
            ends.append(number)
            sums.append(one)
    if len(sums) > 1 and sums[-1].draft_tokens < ENOUGH:  # what is left over goes with the stretch before
        left = sums.pop()
        ends[-2:], sums[-1] = ends[-1:], sums[-1] + left
    dead = [_dead(one, whole) for one in sums]
    if len(sums) < 2 or not any(dead):
        return ""
    number, first = len(intervals), dead.index(True)
    if all(dead):
        return f"dead in all {number} intervals, from the first on"
    alive = "alive before, so state went wrong in service, not at capture"
    if dead[-1]:
        first = len(dead) - dead[::-1].index(False)
        return f"died at interval {ends[first - 1] + 2} of {number}: {alive}"
    last = dead.index(False, first)
    begin = ends[first - 1] + 2 if first else 1
    return (
        f"dead in intervals {begin} to {ends[last - 1] + 1} of {number}, in {sum(dead)} stretches of {len(dead)} in all"
    )


def _dead(one: Counts, whole: Counts) -> bool:
    """No acceptance, and not by chance: it differs from the rest, or all is dead."""
    rest = whole.draft_tokens - one.draft_tokens
    if one.rate >= NONE or not rest or one.draft_tokens < ENOUGH:
        return False
    p = stats.two_proportions(one.accepted, one.draft_tokens, whole.accepted - one.accepted, rest)[1]
    return whole.rate < NONE or p < CERTAIN


def diagnose(found: Counts, loads: Sequence[tuple[int, Counts]] = ()) -> tuple[str, str]:
    """(kind, what it means). `loads`: the same at several concurrencies, to tell a fall with load from a collapse."""
    if found.draft_tokens < ENOUGH:
        return FEW, f"{found.draft_tokens} draft tokens, expected at least {ENOUGH}: it is not known"
    if said := _with_load(loads):
        return said
    positions = found.positions or (found.rate,)
    if max(positions) < NONE:
        return (
            "collapse",
            f"every position is rejected from the first step on (position 0 at {positions[0]:.2%}): the drafter reads "
            "stale or wrong inputs. Likely: its graph replays with the inputs of the capture, an operator was not "
            "recorded into the graph, or a write was removed. The text stays right, since the target model checks "
            f"every token; only speed is lost{f'. {found.course}' if found.course else ''}",
        )
    parts = [(f"at {number} in flight", one) for number, one in loads] + list(found.engines)
    for name, part in parts:
        kind, meaning = diagnose(part)
        if kind in COLLAPSED:
            return "collapse" if loads else "collapse of an engine", f"{name}: {kind}: {meaning}"
    if found.course:
        return "collapse in time", found.course
    if later := _later(found):
        return later
    if found.rate < WELL / 2:
        return (
            "low",
            "few drafts are accepted, yet more than in a collapse: a weak drafter, or drafts for unlike text",
        )
    return ("healthy", "no sign of a collapse")


def _with_load(loads: Sequence[tuple[int, Counts]]) -> tuple[str, str] | None:
    known = [(number, one) for number, one in loads if one.draft_tokens >= ENOUGH]
    if len(known) < 2:
        return None
    (well, best), (ill, worst) = max(known, key=lambda x: x[1].rate), min(known, key=lambda x: x[1].rate)
    if best.rate < WELL / 2 or worst.rate >= best.rate / 2:
        return None
    told = f"{best.rate:.1%} at {well} in flight, {worst.rate:.1%} at {ill}"
    if ill < well:
        return (
            "falls with few",
            f"{told}: right in company. Likely: the graph of the small batch replays what it captured",
        )
    return (
        "falls with load",
        f"{told}: right alone, wrong or useless in company. Likely: buffers or metadata sized or indexed by batch, a "
        "prefill taken for a decode, padding rows; or a drafter that only guesses well for one sequence (n-gram). No "
        "sign of a replay defect",
    )


def _later(found: Counts) -> tuple[str, str] | None:
    """The first position at which next to nothing follows a position that is well, and that drafts do reach."""
    reached = found.draft_tokens / found.drafts if found.drafts else 0
    for i in range(1, len(found.per_position)):
        before, here = found.conditional[i - 1 : i + 1]
        if before >= WELL and here < NONE and found.per_position[i - 1] >= ENOUGH / 2 and reached > i + 0.5:
            return (
                "later positions collapse",
                f"position {i - 1} is fine ({found.positions[i - 1]:.1%}), the later ones are rejected: first the "
                "target's state is read, then the drafter's own. Likely: hidden state, positions or cache slots do not "
                "advance between draft steps",
            )
    return None


def compare(baseline: Counts, candidate: Counts, max_drop: float, where: str) -> list[Finding]:
    """Findings where the candidate falls below the baseline by more than `max_drop` (a fraction, absolute)."""
    found = []
    if baseline.rate - candidate.rate > max_drop:
        z, p = stats.two_proportions(
            baseline.accepted, baseline.draft_tokens, candidate.accepted, candidate.draft_tokens
        )
        words = f"acceptance fell from {baseline.rate:.2%} to {candidate.rate:.2%}, limit {max_drop:.1%}"
        found.append(Finding("acceptance-rate", where, f"{words} (z = {z:.1f}, p = {p:.2g})"))
    (kind, meaning), (before, why) = diagnose(candidate), diagnose(baseline)
    if FEW in (kind, before):
        raise ToolError(meaning if kind == FEW else why, where if kind == FEW else "the baseline")
    if kind in COLLAPSED or (kind != "healthy" and before == "healthy"):
        also = "" if before == "healthy" else f" (and the baseline: {before})"
        found.append(Finding("acceptance-collapse", where, f"{kind}: {meaning}{also}"))
    for i, (a, b) in enumerate(zip(baseline.positions, candidate.positions, strict=False)):
        if a - b > max_drop:
            found.append(Finding("acceptance-position", where, f"position {i} fell from {a:.2%} to {b:.2%}"))
    return found


def lines(name: str, found: Counts) -> list[str]:
    """The numbers as `vllm bench serve` names them, and the conditional series."""
    told = [
        f"{name}: {found.accepted:,} of {found.draft_tokens:,} draft tokens{in_drafts(found)} = "
        f"{percent(found.rate)}, length {length(found)}"
    ]
    for i, (plain, given) in enumerate(zip(found.positions, found.conditional, strict=False)):
        conditional = "-" if math.isnan(given) else percent(given)
        told.append(f"  position {i}: {percent(plain)}, given the one before {conditional}")
    return told + [f"  {engine}: {percent(one.rate)} of {one.draft_tokens:,}" for engine, one in found.engines]


def in_drafts(found: Counts) -> str:
    return f" in {found.drafts:,} drafts" if found.drafts else ""


def length(found: Counts) -> str:
    return f"{found.length:.2f}" if found.drafts else "not told"


def percent(value: float) -> str:
    return f"{100 * value:.2f} %"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A line of the origin table; None where the workload did not measure it."""

    run: str
    mode: str
    itl_ms: float | None
    tokens_per_second: float | None
    counts: Counts | None


def table(rows: Sequence[MatrixRow]) -> list[str]:
    """The origin report's table, as Markdown."""
    told = [
        "| run | mode | mean ITL | output tok/s | acceptance rate | length | position |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        itl = f"{row.itl_ms:.1f} ms" if row.itl_ms is not None else "-"
        speed = f"{row.tokens_per_second:.1f}" if row.tokens_per_second is not None else "-"
        rate, size, positions = "nothing drafted", "-", "-"
        if c := row.counts:
            rate = f"{percent(c.rate)} ({c.accepted:,} of {c.draft_tokens:,}{in_drafts(c)})"
            size = length(c)
            positions = " / ".join(f"{100 * p:.2f}" for p in c.positions)
        told.append(f"| {row.run} | {row.mode} | {itl} | {speed} | {rate} | {size} | {positions} |")
    return told
