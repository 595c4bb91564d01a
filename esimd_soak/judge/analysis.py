"""Table -> Analysis: what the runs say, as values. Pure; prints and draws nothing.

Nothing is pooled without its parts: every number is of one server or of one card, and a total, where there are several,
only stands below them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from esimd_soak.load import watch
from esimd_soak.load.health import trouble
from esimd_soak.score import KINDS
from esimd_soak.store.records import Event
from esimd_soak.store.table import BIT, Group, Table
from esimd_soak.model import Finding, ToolError

from . import acceptance, stats
from .acceptance import Counts
from .stats import Clustering, Interval

BINS = 60
POINTS = 2000  # of a curve; a page of a million would not open


@dataclass(frozen=True, slots=True)
class Rate:
    """Events in scored generations, with what the data cannot exclude."""

    events: int
    generations: int
    exact: Interval
    wilson: Interval
    below: float
    """The one-sided 95 % limit."""

    @property
    def rate(self) -> float:
        return self.events / self.generations

    def words(self) -> str:
        """`0 in 7,296: below 0.041 % at 95 %, one-sided; two-sided 0.0505 %`"""
        counts = f"{self.events:,} in {self.generations:,}"
        if self.events == 0:
            below = f"below {percent(self.below)} at 95 %, one-sided; two-sided {percent(self.exact.high, 3)}"
            return f"{counts}: {below}"
        bounds = f"95 % {percent(self.exact.low)} to {percent(self.exact.high)} (exact)"
        return f"{counts}: {percent(self.rate, 3)}, {bounds}"


@dataclass(frozen=True, slots=True)
class Part:
    """One server, or one card with all its servers, of one run."""

    run: str
    name: str
    card: str
    servers: int
    collapses: Rate | None
    """None: nothing was scored."""
    kinds: dict[str, Rate]
    errors: dict[str, int]
    clusters: Clustering | None
    seconds: float
    tokens_per_second: float
    latency: tuple[float, float]
    """Seconds, median and 99th percentile."""
    first_text: float
    """Seconds to the first text, median; 0 when nothing was streamed."""
    line: TimeLine | None


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Equal pieces of the run: throughput beside correctness, and each collapse's moment (seconds since the start)."""

    width: float
    tokens: list[float]
    """Per second."""
    generations: list[int]
    collapses: list[int]
    moments: list[float]
    steps: list[tuple[int, int]]
    """(position in the order of ended generations, collapses up to it). Of very many, these two hold an even share."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server's own counters said during the run."""

    run: str
    server: str
    most_running: int
    most_waiting: int
    speculation: Counts | None
    """None: no speculative decoding, or the counters began again in between."""


@dataclass(frozen=True, slots=True)
class Analysis:
    runs: list[dict[str, Any]]
    servers: list[Part]
    cards: list[Part]
    counted: tuple[str, ...]
    events: list[tuple[str, Event]]
    troubles: list[str]
    """Why the numbers are not to be trusted."""
    warm: int
    counters: list[Counters] = field(default_factory=list)

    @property
    def scored(self) -> int:
        return sum(part.collapses.generations for part in self.servers if part.collapses)

    @property
    def collapses(self) -> int:
        return sum(part.collapses.events for part in self.servers if part.collapses)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the servers; what is wrong with the measurement is in `troubles`."""
        found = [
            Finding("collapse", Location(part.run), part.name, part.collapses.words())
            for part in self.servers
            if part.collapses and part.collapses.events
        ]
        codes = {"lost": "device-lost", "corrupted": "nan-logits", "down": "server-down"}
        found += [
            Finding(codes[event.kind], Location(run), event.server, event.text)
            for run, event in self.events
            if event.kind in codes
        ]
        return tuple(found)

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings, 2 nothing measured or not to be trusted."""
        if not self.scored or self.troubles:
            return 2
        return 1 if self.findings else 0


def percent(value: float, digits: int = 2) -> str:
    """Two or three significant digits, as the origin reports print small rates."""
    return f"{100 * value:.{digits}g} %" if value < 0.1 else f"{100 * value:.1f} %"


def rate(events: int, generations: int) -> Rate:
    return Rate(
        events,
        generations,
        stats.clopper_pearson(events, generations),
        stats.wilson(events, generations),
        stats.upper_bound(events, generations),
    )


def analyse(table: Table, kinds: tuple[str, ...] = ()) -> Analysis:
    """`kinds`: what counts as a collapse; by default what the plans say, which must then agree."""
    plans = [tuple(meta.plan.get("count", KINDS)) for meta in table.metas]
    counted = kinds or (plans[0] if len(set(plans)) == 1 else KINDS)
    troubles = (
        [] if kinds or len(set(plans)) <= 1 else ["the plans count different kinds as collapses; all are counted"]
    )
    cards: dict[tuple[str, str], list[Group]] = {}
    for group in table.groups:
        cards.setdefault((group.run, group.card), []).append(group)
    return Analysis(
        runs=[{"name": meta.name, "id": meta.id, **meta.plan} for meta in table.metas],
        servers=[_part(table, [group], group.server, counted) for group in table.groups],
        cards=[_part(table, groups, card, counted) for (_, card), groups in cards.items()],
        counted=counted,
        events=[(run, event) for run, event in table.events if event.kind not in ("health", "began")],
        troubles=troubles + _troubles(table),
        warm=table.warm,
        counters=_counters(table),
    )


def _troubles(table: Table) -> list[str]:
    health: dict[str, list[Event]] = {}
    for run, event in table.events:
        if event.kind in ("health", "began"):
            health.setdefault(run, []).append(event)
    found = []
    for run, events in health.items():
        # Each session has its own histograms, so its last word is about the whole of it.
        last = [a for a, b in zip(events, [*events[1:], None], strict=True) if b is None or b.kind == "began"]
        found += [f"{run}: the client was the bottleneck: {why}" for event in last if (why := trouble(event.values))]
    return found


def _counters(table: Table) -> list[Counters]:
    pages: dict[tuple[str, str], list[dict[str, float]]] = {}
    for run, watched in table.watched:
        if watched.values:
            pages.setdefault((run, watched.server), []).append(watched.values)
    found = []
    for (run, server), values in pages.items():
        running, waiting = (
            max(int(v.get(f"vllm:num_requests_{name}", 0)) for v in values) for name in ("running", "waiting")
        )
        with suppress(ToolError):  # a restart in between: there is no difference to take
            change = watch.deltas(values[0], values[-1])
            counts = acceptance.of_counters(change) if change.get(f"{acceptance.PREFIX}drafts") else None
            found.append(Counters(run, server, running, waiting, counts))
            continue
        found.append(Counters(run, server, running, waiting, None))
    return found


def _part(table: Table, groups: list[Group], name: str, counted: tuple[str, ...]) -> Part:
    import numpy as np

    mask = sum(BIT[kind] for kind in counted)
    end = np.concatenate([group.end for group in groups])
    order = np.argsort(end, kind="stable")
    joined = {
        key: np.concatenate([getattr(group, key) for group in groups])[order]
        for key in ("start", "first", "tokens", "kinds", "failed")
    }
    end, good = end[order], ~joined["failed"]
    bad = ((joined["kinds"] & mask) != 0) & good
    scored = int(good.sum())
    seconds = float(end[-1] - joined["start"].min()) if len(end) else 0.0
    took = (end - joined["start"])[good]
    streamed = (joined["first"] > 0) & good
    errors: dict[str, int] = {}
    for group in groups:
        for kind, count in table.errors.get((group.run, group.server), {}).items():
            errors[kind] = errors.get(kind, 0) + count
    return Part(
        run=groups[0].run,
        name=name,
        card=groups[0].card,
        servers=len(groups),
        collapses=rate(int(bad.sum()), scored) if scored else None,
        kinds={k: rate(int(((joined["kinds"] & BIT[k]) != 0)[good].sum()), scored) for k in KINDS} if scored else {},
        errors=errors,
        clusters=stats.clustering(np.flatnonzero(bad[good]).tolist(), scored) if scored else None,
        seconds=seconds,
        tokens_per_second=float(joined["tokens"][good].sum()) / seconds if seconds else 0.0,
        latency=(float(np.median(took)), float(np.quantile(took, 0.99))) if scored else (0.0, 0.0),
        first_text=float(np.median((joined["first"] - joined["start"])[streamed])) if streamed.any() else 0.0,
        line=_line(joined["start"], end, joined["tokens"], good, bad) if scored and seconds else None,
    )


def _line(start: Any, end: Any, tokens: Any, good: Any, bad: Any) -> TimeLine:
    import numpy as np

    began, bins = float(start.min()), min(BINS, max(6, len(end) // 5))
    width = (float(end[-1]) - began) / bins
    place = np.minimum(((end - began) / width).astype(int), bins - 1)
    numbers = np.flatnonzero(bad[good])
    share = slice(None, None, max(1, len(numbers) // POINTS))
    # A generation's tokens come while it runs, not when it ends: at each edge, the part of every one that is past.
    begun, took, of = start[good], np.maximum(end - start, 1e-9)[good], tokens[good]
    edges = began + width * np.arange(bins + 1)
    past = np.array([(of * np.clip((edge - begun) / took, 0, 1)).sum() for edge in edges])
    return TimeLine(
        width=width,
        tokens=(np.diff(past) / width).round(2).tolist(),
        generations=np.bincount(place[good], minlength=bins).tolist(),
        collapses=np.bincount(place[bad], minlength=bins).tolist(),
        moments=(end[bad] - began).round(3)[share].tolist(),
        steps=list(zip(numbers[share].tolist(), np.arange(1, len(numbers) + 1)[share].tolist(), strict=True)),
    )
