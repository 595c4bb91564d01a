"""How fast a server answered: latencies, token times, throughput, goodput. Values of one server or card. Pure.

The words are those of the field. TTFT: from sending to the first text. TPOT: what is left of a request's time after
that, over its tokens but the first. ITL: between two pieces of a stream, each all that one read brings, which may be
several tokens. Of requests that ended whole; times at which the client was not loading (between sessions, or standing
still) are in no rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esimd_soak.load import gaps as buckets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @property
    def seconds(self) -> tuple[float, ...]:
        return self.mean, self.p50, self.p90, self.p95, self.p99


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that kept to every limit of the plan; a request that failed kept to none."""

    limits: str
    good: int
    requests: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Speed:
    seconds: float
    """Of load."""
    requests_per_second: float
    tokens_per_second: float
    latency: Latencies | None
    ttft: Latencies | None
    tpot: Latencies | None
    itl: Latencies | None
    goodput: Goodput | None


def times(values: NDArray[np.float64]) -> Latencies | None:
    import numpy as np

    if not len(values):
        return None
    return Latencies(len(values), float(values.mean()), *(float(x) for x in np.quantile(values, QUANTILES)))


def between(counts: dict[int, int]) -> Latencies | None:
    """Of bucketed gaps."""
    total = sum(counts.values())
    if not total:
        return None
    return Latencies(total, buckets.mean(counts), *(buckets.quantile(counts, share) for share in QUANTILES))


def loaded(start: NDArray[np.float64], end: NDArray[np.float64], began: Sequence[float], still: float) -> float:
    """Seconds from the first request to the last end of each session, added up. `began`: when each session did."""
    import numpy as np

    session = np.searchsorted(np.asarray(sorted(began)), start, side="right")
    whole = sum(float(end[session == one].max() - start[session == one].min()) for one in np.unique(session))
    return max(0.0, whole - still)


def speed(columns: dict[str, Any], counts: dict[int, int], seconds: float, limits: dict[str, float]) -> Speed:
    """`columns`: start, end, first, tokens and whole, one value a request; `limits`: those of the plan's goodput."""
    import numpy as np

    start, end, first, tokens, whole = (columns[name] for name in ("start", "end", "first", "tokens", "whole"))
    streamed = whole & (first > 0)
    several = streamed & (tokens > 1)
    latency, ttft = end - start, first - start
    tpot = np.where(several, (end - first) / np.maximum(tokens - 1, 1), 0.0)
    good = whole.copy()
    told = []
    for name, values in (("ttft", ttft), ("tpot", tpot), ("latency", latency)):
        if limit := limits.get(f"{name}_ms", 0.0):
            told.append(f"{name} {limit:g} ms")
            measured = {"ttft": streamed, "tpot": streamed, "latency": whole}[name]
            good &= measured & (values * 1000 <= limit)
    per = 1 / seconds if seconds else 0.0
    return Speed(
        seconds=seconds,
        requests_per_second=int(whole.sum()) * per,
        tokens_per_second=float(tokens[whole].sum()) * per,
        latency=times(latency[whole]),
        ttft=times(ttft[streamed]),
        tpot=times(tpot[several]),
        itl=between(counts),
        goodput=Goodput(", ".join(told), int(good.sum()), len(start), int(good.sum()) * per) if told else None,
    )
