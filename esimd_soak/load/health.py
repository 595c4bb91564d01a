"""Did the client measure itself? Its own delays, the lag of its event loop, its share of a processor.

Knows the clock and this process. Fixed memory: histograms, however long the run.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping

from esimd_soak.plan import Client

TICK = 0.02
FEW = 5  # hiccups that any machine has; below this many a short run is not void


class Health:
    def __init__(self, limits: Client) -> None:
        from hdrh.histogram import HdrHistogram

        self._limits = limits
        self._late = HdrHistogram(1, 60_000_000, 2)  # µs; to a minute, two digits
        self._lag = HdrHistogram(1, 60_000_000, 2)
        self._over = {"late": 0, "lag": 0}
        self._began, self._cpu = time.monotonic(), time.process_time()

    def delay(self, seconds: float) -> None:
        """A slot was free this long before its next request went out."""
        self._late.record_value(max(1, int(seconds * 1e6)))
        self._over["late"] += seconds * 1000 > self._limits.late_ms

    async def lag(self) -> None:
        """Measures, until cancelled, how much too late the event loop comes round."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(TICK)
            late = time.monotonic() - before - TICK
            self._lag.record_value(max(1, int(late * 1e6)))
            self._over["lag"] += late * 1000 > self._limits.lag_ms

    def values(self) -> dict[str, float]:
        """Milliseconds, and the share of one processor."""
        wall = time.monotonic() - self._began
        return {
            "late_p50_ms": self._late.get_value_at_percentile(50) / 1000,
            "late_p99_ms": self._late.get_value_at_percentile(99) / 1000,
            "lag_p99_ms": self._lag.get_value_at_percentile(99) / 1000,
            "cpu": (time.process_time() - self._cpu) / wall if wall else 0.0,
            "late_over": self._over["late"],
            "lag_over": self._over["lag"],
            "late_limit_ms": self._limits.late_ms,
            "lag_limit_ms": self._limits.lag_ms,
        }


def trouble(values: Mapping[str, float | None]) -> str:
    """Why these measurements void a run; empty when they do not."""
    found = []
    for name, words in (("late", "requests went out late"), ("lag", "the event loop came round late")):
        high, limit = values.get(f"{name}_p99_ms") or 0.0, values.get(f"{name}_limit_ms") or math.inf
        if high > limit and (values.get(f"{name}_over") or 0) > FEW:
            found.append(f"{words}: 99th percentile {high:.1f} ms, limit {limit:g} ms")
    if found:
        found.append(f"the client used {values.get('cpu') or 0:.0%} of a processor")
    return "; ".join(found)
