"""Times between the pieces of a stream as counts in fixed buckets: small enough to be kept of every generation. Pure.

Bucket i holds gaps from `BASE * GROWTH**i` seconds on, up to the next; a value read back is off by at most 2.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

BASE, GROWTH, BUCKETS = 1e-5, 1.05, 400  # 10 µs to 49 minutes
_LOG = math.log(GROWTH)


def bucket(seconds: float) -> int:
    return min(BUCKETS - 1, max(0, int(math.log(max(seconds, BASE) / BASE) / _LOG)))


def seconds(bucket: int) -> float:
    """The middle of a bucket."""
    return BASE * math.exp(_LOG * (bucket + 0.5))


def quantile(counts: Mapping[int, int], share: float) -> float:
    """The gap below which `share` of all gaps lie, in seconds; 0 when there are none."""
    rest = share * sum(counts.values())
    for one in sorted(counts):
        rest -= counts[one]
        if rest <= 0:
            return seconds(one)
    return 0.0


def mean(counts: Mapping[int, int]) -> float:
    total = sum(counts.values())
    return sum(seconds(one) * n for one, n in counts.items()) / total if total else 0.0
