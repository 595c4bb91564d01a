"""Times between the pieces of a stream as counts in fixed buckets: small enough to be kept of every generation. Pure.

Bucket i holds gaps from `BASE * GROWTH**i` seconds on, up to the next; a value read back is off by at most 2.5 %.
"""

from __future__ import annotations

import bisect
import itertools
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
    """The gap below which `share` of all gaps lie, in seconds; of at least one gap."""
    places = sorted(counts)
    so_far = list(itertools.accumulate(counts[place] for place in places))
    return seconds(places[bisect.bisect_left(so_far, share * so_far[-1])])


def mean(counts: Mapping[int, int]) -> float:
    return sum(seconds(one) * n for one, n in counts.items()) / sum(counts.values())
