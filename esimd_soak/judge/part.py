"""Groups of generations -> Part: what one server, or one card with all its servers, did. Pure.

Nothing is pooled without its parts: every number is of one server or of one card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from esimd_soak.score import KINDS
from esimd_soak.store.table import BIT, ServerGroup

from . import clusters, speed, stats
from .clusters import Spread
from .speed import Speed
from .stats import Clustering, Interval

BINS = 60
POINTS = 2000  # of a curve; a page of a million would not open


@dataclass(frozen=True, slots=True)
class Rate:
    """Events in judged generations, with what the data cannot exclude.

    `spread` is the interval by blocks, which holds when collapses come in bursts; `exact` and `wilson` hold when no
    collapse has to do with another. `spread` is None where the order is not known.
    """

    events: int
    generations: int
    exact: Interval
    wilson: Interval
    below: float
    """The one-sided 95 % limit."""
    spread: Spread | None = None

    @property
    def rate(self) -> float:
        return self.events / self.generations

    @property
    def interval(self) -> Interval:
        return self.spread.interval if self.spread else self.exact

    def words(self) -> str:
        """`0 in 7,296: below 0.041 % at 95 %, one-sided; two-sided 0.0505 %; were they to come in bursts …`"""
        counts = f"{self.events:,} in {self.generations:,}"
        if self.events == 0:
            below = f"below {percent(self.below)} at 95 %, one-sided; two-sided {percent(self.exact.high, 3)}"
            bursts = f"; were they to come in bursts of {clusters.LONGEST}: {percent(self.interval.high, 3)}"
            return f"{counts}: {below}{bursts if self.spread else ''}"
        how = f"by {self.spread.blocks} blocks" if self.spread else "exact"
        bounds = f"95 % {percent(self.interval.low)} to {percent(self.interval.high)} ({how})"
        return f"{counts}: {percent(self.rate, 3)}, {bounds}"

    def alone(self) -> str:
        """The intervals that would hold if no collapse had to do with another."""
        both = (("exact", self.exact), ("Wilson", self.wilson))
        told = "; ".join(f"{name} {percent(x.low)} to {percent(x.high)}" for name, x in both)
        effect = f"design effect {self.spread.effect:.1f}; " if self.spread and self.events else ""
        return f"{effect}were each collapse alone: {told}"


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
class ServerPart:
    """One server, or one card with all its servers, of one run."""

    run: str
    name: str
    card: str
    servers: int
    sent: int
    """Requests that were answered, or should have been; warm-up left out."""
    partial: int
    """Of those that are not whole, so many were judged by what had come."""
    judged: float
    """The share of them of which the verdict can be said: whole ones, and any that collapsed as far as they came."""
    collapses: Rate | None
    """None: nothing was judged."""
    kinds: dict[str, Rate]
    errors: dict[str, int]
    clusters: Clustering | None
    speed: Speed
    drafted: int
    accepted: int
    line: TimeLine | None


def percent(value: float, digits: int = 2) -> str:
    """Two or three significant digits, as the origin reports print small rates."""
    return f"{100 * value:.{digits}g} %" if value < 0.1 else f"{100 * value:.1f} %"


def rate(events: int, generations: int, spread: Spread | None = None) -> Rate:
    return Rate(
        events,
        generations,
        stats.clopper_pearson(events, generations),
        stats.wilson(events, generations),
        stats.upper_bound(events, generations),
        spread,
    )


def sequence(group: ServerGroup, counted: Sequence[str]) -> Any:
    """One truth value a judged generation, in the order in which they ended: did it collapse?"""
    return ((group.kinds & sum(BIT[kind] for kind in counted)) != 0)[group.judged]


def part(
    groups: Sequence[ServerGroup],
    name: str,
    counted: tuple[str, ...],
    errors: dict[str, int],
    began: Sequence[float],
    still: float,
    limits: dict[str, float],
) -> ServerPart:
    """`began`: when each session of the run did; `still`: seconds at which the client stood; `limits`: of goodput."""
    import numpy as np

    end = np.concatenate([group.end for group in groups])
    order = np.argsort(end, kind="stable")
    names = ("start", "first", "tokens", "kinds", "judged", "whole")
    joined = {key: np.concatenate([getattr(group, key) for group in groups])[order] for key in names}
    joined["end"] = end[order]
    good = joined["judged"]
    bad = ((joined["kinds"] & sum(BIT[kind] for kind in counted)) != 0) & good
    judged = int(good.sum())
    blocks = [clusters.cut(sequence(group, counted)) for group in groups if group.judged.any()]
    spread = clusters.spread(clusters.join(blocks)) if judged else None
    counts: Counter[int] = Counter()
    for group in groups:
        counts.update(group.gaps)
    seconds = speed.loaded(joined["start"], joined["end"], began, still)
    return ServerPart(
        run=groups[0].run,
        name=name,
        card=groups[0].card,
        servers=len(groups),
        sent=len(end),
        partial=int((good & ~joined["whole"]).sum()),
        judged=float((good & (joined["whole"] | bad)).mean()),
        collapses=rate(int(bad.sum()), judged, spread) if judged else None,
        kinds={k: rate(int(((joined["kinds"] & BIT[k]) != 0)[good].sum()), judged) for k in KINDS} if judged else {},
        errors=errors,
        clusters=stats.clustering(np.flatnonzero(bad[good]).tolist(), judged) if judged else None,
        speed=speed.speed(joined, dict(counts), seconds, limits),
        drafted=sum(group.drafted for group in groups),
        accepted=sum(group.accepted for group in groups),
        line=_line(joined, bad) if judged and joined["end"][-1] > joined["start"].min() else None,
    )


def _line(joined: dict[str, Any], bad: Any) -> TimeLine:
    import numpy as np

    start, end, good = joined["start"], joined["end"], joined["judged"]
    began, bins = float(start.min()), min(BINS, max(6, len(end) // 5))
    width = (float(end[-1]) - began) / bins
    place = np.minimum(((end - began) / width).astype(int), bins - 1)
    numbers = np.flatnonzero(bad[good])
    share = slice(None, None, max(1, len(numbers) // POINTS))
    # A generation's tokens come while it runs, not when it ends: at each edge, the part of every one that is past.
    begun, took, of = start[good], np.maximum(end - start, 1e-9)[good], joined["tokens"][good]
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
