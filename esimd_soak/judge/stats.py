"""Counts -> intervals, tests, power. Pure; knows nothing of servers or files.

Rates here are far below one per cent with few events, so intervals are exact or score intervals (never the textbook
normal one, which is empty at zero events), and tests for clusters take their null distribution from simulation with a
fixed seed: the same data give the same p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

NORMAL = NormalDist()
TAIL = 0.025
"""Beyond each end of an interval: all are of 95 %, as every report says."""
Z = NORMAL.inv_cdf(1 - TAIL)
MANY = 2000  # events, from which on Greenwood's statistic is near enough to normal, and simulating it takes long


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two proportions, A against B. `difference` is B minus A; `ratio` B over A (None where undefined)."""

    z: float
    p: float
    fisher: float
    difference: float
    difference_interval: Interval
    ratio: float | None
    ratio_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Clustering:
    """Are events bunched? `dispersion` is variance over mean of counts in equal bins (1 at a constant rate);
    `greenwood` the sum of squared gaps over its expectation (1 at a constant rate). Each with a one-sided p."""

    events: int
    trials: int
    bins: int
    dispersion: float
    dispersion_p: float
    greenwood: float
    greenwood_p: float
    median_gap: float
    shortest_gap: int


def _check(k: int, n: int) -> None:
    if not 0 <= k <= n or n == 0:
        raise ValueError(f"expected 0 <= events <= trials and at least one trial, found {k}/{n}")


def clopper_pearson(k: int, n: int, tail: float = TAIL) -> Interval:
    """The exact two-sided interval of a proportion (Clopper and Pearson, Biometrika 26, 1934)."""
    from scipy.special import betaincinv

    _check(k, n)
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(low, high)


def upper_bound(k: int, n: int) -> float:
    """The exact one-sided upper limit: rates above it are excluded at 95 %."""
    return clopper_pearson(k, n, 2 * TAIL).high


def wilson(k: int, n: int) -> Interval:
    """The score interval (Wilson, JASA 22, 1927), without continuity correction."""
    _check(k, n)
    rate, square = k / n, Z * Z / n
    centre = (rate + square / 2) / (1 + square)
    half = math.sqrt(rate * (1 - rate) * square + square * square / 4) / (1 + square)
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half)


def two_proportions(k1: int, n1: int, k2: int, n2: int) -> tuple[float, float]:
    """(z, two-sided p) of the pooled two-proportion test; z is positive when the first rate is the higher.

    With no event, or nothing but events, in both arms there is nothing to tell apart: (0, 1).
    """
    _check(k1, n1)
    _check(k2, n2)
    pooled = (k1 + k2) / (n1 + n2)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    z = (k1 / n1 - k2 / n2) / error if error else 0.0
    return z, math.erfc(abs(z) / math.sqrt(2))


def fisher(k1: int, n1: int, k2: int, n2: int) -> float:
    """The two-sided p of Fisher's exact test: the sum of all tables no likelier than this one."""
    from scipy.stats import fisher_exact

    _check(k1, n1)
    _check(k2, n2)
    return float(fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue)


def compare(k1: int, n1: int, k2: int, n2: int) -> Comparison:
    """The tests, and the effect with its interval.

    Difference: hybrid score interval (Newcombe, Statistics in Medicine 17, 1998, method 10). Ratio: the log method
    (Katz and others, Biometrics 34, 1978).
    """
    z, p = two_proportions(k1, n1, k2, n2)
    a, b = k1 / n1, k2 / n2
    wa, wb = wilson(k1, n1), wilson(k2, n2)
    difference = b - a
    spread = Interval(
        difference - math.hypot(b - wb.low, wa.high - a),
        difference + math.hypot(wb.high - b, a - wa.low),
    )
    ratio, ratio_interval = None, None
    if k1 and k2:
        ratio = b / a
        half = Z * math.sqrt(1 / k1 - 1 / n1 + 1 / k2 - 1 / n2)
        ratio_interval = Interval(ratio * math.exp(-half), ratio * math.exp(half))
    return Comparison(z, p, fisher(k1, n1, k2, n2), difference, spread, ratio, ratio_interval)


def sample_size(rate: float, ratio: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Generations an arm needs so that a two-sided two-proportion test finds `rate` against `rate * ratio`.

    Fleiss, Statistical Methods for Rates and Proportions, without continuity correction.
    """
    other = rate * ratio
    if not (0 < rate < 1 and 0 < other < 1) or ratio == 1:
        raise ValueError(f"expected rates between 0 and 1 and a ratio other than 1, found {rate:g} and {other:g}")
    mean = (rate + other) / 2
    za, zb = NORMAL.inv_cdf(1 - alpha / 2), NORMAL.inv_cdf(power)
    root = za * math.sqrt(2 * mean * (1 - mean)) + zb * math.sqrt(rate * (1 - rate) + other * (1 - other))
    return math.ceil((root / (rate - other)) ** 2)


def power_of(n: float, rate: float, ratio: float, alpha: float = 0.05) -> float:
    """The chance that `n` generations an arm find this ratio; the inverse of `sample_size`."""
    other = rate * ratio
    mean = (rate + other) / 2
    gap = abs(rate - other) * math.sqrt(n) - NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(2 * mean * (1 - mean))
    return NORMAL.cdf(gap / math.sqrt(rate * (1 - rate) + other * (1 - other)))


def clean_size(rate: float) -> int:
    """How many generations without one event exclude `rate` at 95 %, one-sided."""
    if not 0 < rate < 1:
        raise ValueError(f"expected a rate between 0 and 1, found {rate:g}")
    return math.ceil(math.log(2 * TAIL) / math.log1p(-rate))


def clustering(positions: Sequence[int], trials: int, draws: int = 4000, seed: int = 0) -> Clustering | None:
    """Do events at these positions (0-based, of `trials` generations in order) come in bursts?

    Both tests are conditional on the number of events. Dispersion: variance over mean of counts in equal bins, about
    five events a bin. Gaps: Greenwood's statistic (JRSS 109, 1946; its
    moments: Moran, JRSS B 9, 1947). None below five events: no test says anything.
    """
    import numpy as np

    k = len(positions)
    if k < 5:
        return None
    if trials < k or min(positions) < 0 or max(positions) >= trials:
        raise ValueError(f"expected positions within {trials} generations, found {min(positions)} to {max(positions)}")
    random = np.random.default_rng(seed)
    events = np.sort(np.asarray(positions))
    bins = max(2, min(50, k // 5 if k >= 15 else 3))
    counts = np.bincount(events * bins // trials, minlength=bins)
    dispersion = float(counts.var(ddof=1) / counts.mean())
    null = random.multinomial(k, np.full(bins, 1 / bins), size=draws)
    spread = null.var(axis=1, ddof=1) / (k / bins)
    edges = np.concatenate(([-1], events, [trials]))
    gaps = np.diff(edges) / (trials + 1)
    expected = 2 / (k + 2)
    greenwood = float((gaps**2).sum()) / expected
    if k <= MANY:
        # k uniform points cut a line into the same lengths as k+1 exponential draws scaled to their sum.
        cuts = random.standard_exponential((draws, k + 1))
        squares = ((cuts / cuts.sum(axis=1, keepdims=True)) ** 2).sum(axis=1) / expected
        greenwood_p = float((1 + (squares >= greenwood - 1e-12).sum()) / (draws + 1))
    else:
        greenwood_p = 1 - NORMAL.cdf((greenwood - 1) * math.sqrt((k + 3) * (k + 4) / k))
    between = np.diff(events)
    return Clustering(
        events=k,
        trials=trials,
        bins=bins,
        dispersion=dispersion,
        dispersion_p=float((1 + (spread >= dispersion - 1e-12).sum()) / (draws + 1)),
        greenwood=greenwood,
        greenwood_p=greenwood_p,
        median_gap=float(np.median(between)),
        shortest_gap=int(between.min()),
    )
