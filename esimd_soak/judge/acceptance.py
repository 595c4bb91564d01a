"""Speculative decoding: what Counts say. Pure.

One rule judges every part: each engine, load, position and stretch of time, and their unions, so that nothing on the
whole hides a part. A part is dead where next to none of the drafts that reach it are accepted, and where chance would
not bring such a part about, out of all the parts looked at, at the acceptance that is seen elsewhere.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from esimd_soak.model import Finding, ToolError

from . import stats
from .drafts import Counts

NONE, WELL = 0.05, 0.30
"""Acceptance at a position under the first is as good as none, from the second on is fine."""
ENOUGH = 100
"""Draft tokens; of a part with fewer nothing is said."""
TYPICAL, SPREAD = 0.6, 10.0
"""Acceptance of a drafter that is well, and how it varies from text to text: as a beta distribution of this sum of its
two parameters does. In published logs it is 0.3 to 1 at position 0, by 0.15 from interval to interval."""
CERTAIN = math.log(1000)
"""Nats: chance brings about no dead part in 999 of a thousand runs."""
SHOWN = 3
"""Stretches of time that are told, and parts of which nothing is known."""
FEW = "too few drafts"
COLLAPSED = (
    "collapse", "collapse of an engine", "collapse in time", "later positions collapse", "falls with load",
    "falls with few",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Acceptance:
    kind: str
    meaning: str
    whole: Counts
    engines: tuple[Counts, ...]

    @property
    def collapsed(self) -> bool:
        return self.kind in COLLAPSED

    @property
    def exit_code(self) -> int:
        """0 no collapse, 1 a collapse, 2 not known."""
        return 2 if self.kind == FEW else int(self.collapsed)


@dataclass(frozen=True, slots=True)
class DraftedPart:
    """Some intervals of an engine (or all engines) at a load (or all loads), at one position."""

    load: int
    engine: str
    position: int
    chosen: Sequence[int]
    """The numbers of these intervals."""
    intervals: int
    """Of all time."""
    tokens: int
    accepted: float
    reached: float
    """Drafts that got so far."""
    certain: float
    """Nats by which chance, over all that was looked at, falls short of so little that was accepted."""

    @property
    def always(self) -> bool:
        return len(self.chosen) == self.intervals

    @property
    def where(self) -> str:
        return ", ".join([f"at {self.load} in flight"] * bool(self.load) + [self.engine] * bool(self.engine))


def total(parts: Sequence[Counts]) -> Counts:
    return functools.reduce(Counts.__add__, parts)


def diagnose(parts: Sequence[Counts]) -> Acceptance:
    """Of what was drafted in intervals, by engines, at loads."""
    series, whole = _series(parts), total(parts)
    engines = tuple(replace(total(own), engine=engine) for (load, engine), own in series.items() if engine and not load)
    healthy = _healthy(parts)
    looks = math.log(len(series) * len(healthy))
    found = [one for key, own in series.items() for one in _judged(key, own, healthy, looks)]
    kind, meaning = _said(whole, found) if whole.draft_tokens >= ENOUGH else (FEW, _few(found[0]))
    fall = _with_load([(load, total(own)) for (load, engine), own in series.items() if load and not engine])
    return Acceptance(*(fall or (kind, meaning)), whole, engines)


def _series(parts: Sequence[Counts]) -> dict[tuple[int, str], list[Counts]]:
    """(load, engine), with 0 and "" for all of several -> what was drafted in each interval, in order."""
    found: dict[tuple[int, str], dict[int, Counts]] = {}
    loads, engines = len({part.load for part in parts}) > 1, len({part.engine for part in parts}) > 1
    for part in parts:
        for key in dict.fromkeys(itertools.product((0, part.load * loads), ("", part.engine * engines))):
            own = found.setdefault(key, {})
            own[part.when] = own[part.when] + part if part.when in own else part
    return {key: list(own.values()) for key, own in found.items()}


def _healthy(parts: Sequence[Counts]) -> list[float]:
    """What is accepted at each position where it is not dead. Where it is dead everywhere, what is at the one before:
    of the drafts that get so far, a drafter that is well has about the same share accepted at each."""
    found, rate = list[float](), TYPICAL
    for cells in zip(*(part.reached for part in parts), strict=True):
        alive = [(accepted, reached) for accepted, reached in cells if reached and accepted >= NONE * reached]
        if sum(k for k, _ in cells) > NONE * sum(n for _, n in cells):
            rate = min(0.99, sum(k for k, _ in alive) / sum(n for _, n in alive))
        found.append(rate)
    return found


def _judged(
    key: tuple[int, str], own: Sequence[Counts], healthy: Sequence[float], looks: float
) -> Iterator[DraftedPart]:
    """At each position, of intervals one by one, in pairs, in fours and so on to all together, those that look most
    like dead ones."""
    many, levels = len(own), (len(own) - 1).bit_length() + 1
    cells = [one.reached for one in own]
    for position, rate in enumerate(healthy):
        blocks = [(*cell[position], one.draft_tokens) for cell, one in zip(cells, own, strict=True)]
        for size in (2**level for level in range(levels)):
            picked, nats = _picked([_nats(accepted, reached, rate) for accepted, reached, _ in blocks])
            accepted, reached, tokens = (sum(blocks[i][of] for i in picked) for of in range(3))
            dead = tokens >= ENOUGH and reached >= 1 / NONE and accepted < NONE * reached
            certain = nats - looks - math.log(levels) - CERTAIN if dead else -math.inf
            chosen = [i for block in picked for i in range(block * size, min(block * size + size, many))]
            yield DraftedPart(*key, position, chosen, many, int(tokens), accepted, reached, certain)
            pairs = itertools.zip_longest(blocks[::2], blocks[1::2], fillvalue=(0.0, 0.0, 0))
            blocks = [(a + c, b + d, m + n) for (a, b, m), (c, d, n) in pairs]


def _picked(nats: Sequence[float]) -> tuple[list[int], float]:
    """The intervals that tell most together, and how much beyond the number of choices of so many (a logarithm)."""
    best, total, ways = (-math.inf, 0), 0.0, 0.0
    order = sorted(range(len(nats)), key=lambda i: -nats[i])
    order = [i for i in order if nats[i]] or order  # where none looks dead, all
    for many, i in enumerate(order, 1):
        total += nats[i]
        ways += math.log((len(nats) - many + 1) / many)
        best = max(best, (_joint(many, total) - ways, many))
    return sorted(order[: best[1]]), best[0]


def _nats(accepted: float, reached: float, rate: float) -> float:
    """A bound on the chance that so few are accepted, as its negative logarithm; 0 where they are not few.

    Drafts of one text have to do with each other: the rate of a part is a draw from a beta distribution, so that the
    count has the beta-binomial one. Below its mode no term is larger than the last.
    """
    if accepted >= NONE * reached:
        return 0.0
    a, b = SPREAD * rate, SPREAD * (1 - rate)
    missed, gamma = reached - accepted, math.lgamma
    ways = gamma(reached + 1) - gamma(accepted + 1) - gamma(missed + 1)
    term = ways + gamma(accepted + a) + gamma(missed + b) - gamma(reached + SPREAD)
    return -(math.log(accepted + 1) + term - gamma(a) - gamma(b) + gamma(SPREAD))


def _joint(many: int, nats: float) -> float:
    """Of parts that have nothing to do with each other (Fisher's sum of logarithms; Chernoff's bound of its tail)."""
    return nats if many == 1 else nats - many * (1 + math.log(nats / many)) if nats > many else 0.0


def _said(whole: Counts, found: Sequence[DraftedPart]) -> tuple[str, str]:
    worst = max(found, key=lambda one: (one.always and one.certain > 0, one.certain))
    if worst.certain > 0:
        return _collapse(worst)
    unsaid: dict[tuple[int, str], DraftedPart] = {}  # the first position of each of which nothing can be said
    for one in found:
        if one.always and not (one.tokens >= ENOUGH and one.reached and one.accepted >= NONE * one.reached):
            unsaid.setdefault((one.load, one.engine), one)
    if (first := unsaid.get((0, ""))) and not first.position:
        return FEW, _few(first)
    few = [*map(_few, unsaid.values())]
    more = [f"{len(few) - SHOWN} parts more"] if len(few) > SHOWN else []
    also = f". Not known: {'; '.join([*few[:SHOWN], *more])}" if few else ""
    if whole.rate < WELL / 2:
        return (
            "low",
            f"few drafts are accepted, yet more than in a collapse: a weak drafter, or drafts for unlike text{also}",
        )
    return "healthy", f"no sign of a collapse{also}"


def _few(one: DraftedPart) -> str:
    where = f"{one.where}: " if one.where else ""
    if one.tokens < ENOUGH:
        return f"{where}{one.tokens} draft tokens, expected at least {ENOUGH}: it is not known"
    return f"{where}position {one.position}: {one.reached:.0f} drafts reach it, too few"


def _collapse(worst: DraftedPart) -> tuple[str, str]:
    kind, meaning, course = "collapse in time", "", _course(worst)
    rate = worst.accepted / worst.reached
    if worst.position:
        kind = "later positions collapse"
        meaning = (
            f"position {worst.position - 1} is fine, the later ones are rejected ({rate:.2%} of {worst.reached:,.0f} "
            "drafts that reach them): first the target's state is read, then the drafter's own. Likely: hidden state, "
            "positions or cache slots do not advance between draft steps"
        )
    elif worst.always:
        kind = "collapse"
        meaning = (
            f"every position is rejected from the first step on (position 0 at {rate:.2%}): the drafter reads stale or "
            "wrong inputs. Likely: its graph replays with the inputs of the capture, an operator was not recorded into "
            "the graph, or a write was removed. The text stays right, since the target model checks every token; only "
            "speed is lost"
        )
    meaning = ". ".join(filter(None, (meaning, course)))
    if worst.where:
        return "collapse of an engine" if worst.engine else "collapse", f"{worst.where}: {kind}: {meaning}"
    return kind, meaning


def _course(one: DraftedPart) -> str:
    """When it was dead, where intervals are told."""
    if one.intervals == 1:
        return ""
    if len(one.chosen) == one.intervals:
        return f"dead in all {one.intervals} intervals, from the first on"
    runs = list[list[int]]()
    for i in one.chosen:
        if not runs or i > runs[-1][-1] + 1:
            runs.append([i])
        runs[-1].append(i)
    if len(runs) == 1 and one.chosen[-1] == one.intervals - 1:
        alive = "alive before, so state went wrong in service, not at capture"
        return f"died at interval {one.chosen[0] + 1} of {one.intervals}: {alive}"
    told = ", ".join(f"{run[0] + 1} to {run[-1] + 1}" for run in runs[:SHOWN])
    if len(runs) <= SHOWN:
        return f"dead in intervals {told} of {one.intervals}"
    return (
        f"dead in intervals {told} and {len(runs) - SHOWN} stretches more of {one.intervals}, others between them are "
        "well: one of several engines whose lines do not say whose they are, or state that comes and goes"
    )


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


def compare(before: Acceptance, after: Acceptance, max_drop: float, where: str) -> list[Finding]:
    """Findings where the acceptance after falls below that before by more than `max_drop` (a fraction, absolute)."""
    found, baseline, candidate = [], before.whole, after.whole
    if baseline.rate - candidate.rate > max_drop:
        z, p = stats.two_proportions(
            baseline.accepted, baseline.draft_tokens, candidate.accepted, candidate.draft_tokens
        )
        words = f"acceptance fell from {baseline.rate:.2%} to {candidate.rate:.2%}, limit {max_drop:.1%}"
        found.append(Finding("acceptance-rate", where, f"{words} (z = {z:.1f}, p = {p:.2g})"))
    for one, which in ((after, where), (before, "the baseline")):
        if one.kind == FEW:
            raise ToolError(one.meaning, which)
    if after.collapsed or (after.kind != "healthy" and before.kind == "healthy"):
        also = "" if before.kind == "healthy" else f" (and the baseline: {before.kind})"
        found.append(Finding("acceptance-collapse", where, f"{after.kind}: {after.meaning}{also}"))
    for i, (a, b) in enumerate(zip(baseline.positions, candidate.positions, strict=False)):
        if a - b > max_drop:
            found.append(Finding("acceptance-position", where, f"position {i} fell from {a:.2%} to {b:.2%}"))
    return found


def lines(name: str, verdict: Acceptance) -> list[str]:
    """The numbers as `vllm bench serve` names them, and the conditional series."""
    found = verdict.whole
    told = [
        f"{name}: {found.accepted:,} of {found.draft_tokens:,} draft tokens{in_drafts(found)} = "
        f"{percent(found.rate)}, length {length(found)}"
    ]
    for i, (plain, given) in enumerate(zip(found.positions, found.conditional, strict=False)):
        conditional = "-" if math.isnan(given) else percent(given)
        told.append(f"  position {i}: {percent(plain)}, given the one before {conditional}")
    return told + [f"  {one.engine}: {percent(one.rate)} of {one.draft_tokens:,}" for one in verdict.engines]


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
    verdict: Acceptance | None


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
        if row.verdict:
            c = row.verdict.whole
            rate = f"{percent(c.rate)} ({c.accepted:,} of {c.draft_tokens:,}{in_drafts(c)})"
            size = length(c)
            positions = " / ".join(f"{100 * p:.2f}" for p in c.positions)
        told.append(f"| {row.run} | {row.mode} | {itl} | {speed} | {rate} | {size} | {positions} |")
    return told
