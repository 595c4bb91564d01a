"""Events that come in bursts: intervals and tests that count a burst as one event, not as many. Pure.

The generations of a server, in the order in which they ended, are cut into equal blocks, whose number is fixed
beforehand (`BLOCKS`). A burst lies within a block or on the edge of two, so that blocks may be taken as independent
where generations may not. Everything random has a fixed seed: the same data give the same numbers.

The interval is that of Korn and Graubard (Survey Methodology 24, 1998, 193-201): the exact binomial interval of
Clopper and Pearson at an effective number of generations, which is the real one over the design effect (the variance
of the rate between blocks over the binomial one, never below 1), reduced by the degrees of freedom that the blocks
leave. The test of two arms is a permutation test over blocks (Pitman, JRSS Supplement 4, 1937; blocks of dependent data
as the units: Künsch, Annals of Statistics 17, 1989): where arms are alike, every deal of the blocks is as likely as the
one seen. The interval of a difference is squared and added from those of the arms (MOVER: Zou and Donner, Statistics in
Medicine 27, 2008, which generalizes Newcombe's method 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import stats
from .stats import NORMAL, Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCKS = 40
"""Of an arm. More, and bursts cross their edges; fewer, and the variance between them is a guess."""
SHORTEST, FEWEST = 5, 8
"""Generations in a block: an arm of fewer than 200 has fewer blocks, one of fewer than 40 shorter ones."""
DEALS = 9999
AT_ONCE = 1000
"""Blocks, above which the keys of all deals would take much memory."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Events and generations of consecutive blocks of one server, both int64 of the same length."""

    events: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spread:
    """A rate with its interval by blocks. `effect`: the design effect, about the size of a burst; 1 for none."""

    interval: Interval
    effect: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """B against A by blocks: a two-sided p, and the intervals of difference (B minus A) and ratio (B over A)."""

    p: float
    blocks: int
    difference_interval: Interval
    ratio_interval: Interval | None
    effect: float
    """The larger design effect of the two arms."""


def cut(bad: Any, blocks: int = 0) -> Blocks:
    """Cuts one truth value a generation, in order, into `blocks` equal parts (0: `BLOCKS`, fewer for few)."""
    import numpy as np

    values = np.asarray(bad, dtype=np.int64)
    number = min(blocks, max(1, len(values))) or _number(len(values))
    edges = np.arange(number + 1) * len(values) // number
    edges = np.unique(edges)
    return Blocks(np.add.reduceat(values, edges[:-1]) if len(values) else values, np.diff(edges))


def _number(generations: int) -> int:
    return max(1, min(BLOCKS, max(FEWEST, generations // SHORTEST), generations))


def join(parts: Sequence[Blocks]) -> Blocks:
    import numpy as np

    return Blocks(np.concatenate([part.events for part in parts]), np.concatenate([part.sizes for part in parts]))


def spread(blocks: Blocks, confidence: float = 0.95) -> Spread:
    """The Korn-Graubard interval. Without an event it is the exact one: of bursts never seen, nothing is known."""
    from scipy.special import stdtrit

    events, n, number = int(blocks.events.sum()), int(blocks.sizes.sum()), len(blocks.sizes)
    exact = stats.clopper_pearson(events, n, confidence)
    if not 0 < events < n or number < 2:
        return Spread(exact, 1.0, number)
    effect = design_effect(blocks)
    wanted = 0.5 + confidence / 2
    fewer = (NORMAL.inv_cdf(wanted) / float(stdtrit(number - 1, wanted))) ** 2
    effective = n / effect * fewer
    return Spread(_exact(events / n * effective, effective, confidence), effect, number)


def design_effect(blocks: Blocks) -> float:
    """The variance of the rate between blocks over the binomial one (Kish, Survey Sampling, 1965), at least 1."""
    events, n, number = int(blocks.events.sum()), int(blocks.sizes.sum()), len(blocks.sizes)
    rate = events / n
    if number < 2 or not 0 < rate < 1:
        return 1.0
    residual = blocks.events - rate * blocks.sizes  # the linearized ratio estimator
    variance = number / (number - 1) * float((residual**2).sum()) / n**2
    return max(1.0, variance / (rate * (1 - rate) / n))


def _exact(k: float, n: float, confidence: float) -> Interval:
    """Clopper-Pearson for numbers that need not be whole."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    return Interval(low, float(betaincinv(k + 1, n - k, 1 - tail)))


def contrast(a: dict[str, Any], b: dict[str, Any], confidence: float = 0.95, seed: int = 0) -> Contrast:
    """Two arms: card -> one truth value a generation, in order.

    Where both arms have the same cards, blocks are dealt within each card, since cards differ by themselves. Blocks are
    of one length in both arms, so that one stands for another.
    """
    strata = sorted(a) if set(a) == set(b) else [""]
    whole_a, whole_b = (arm if strata != [""] else {"": _chain(arm)} for arm in (a, b))
    pairs = [_pair(whole_a[name], whole_b[name]) for name in strata]
    joined_a, joined_b = join([x for x, _ in pairs]), join([y for _, y in pairs])
    sa, sb = spread(joined_a, confidence), spread(joined_b, confidence)
    sa, sb = _alike(sa, joined_a, sb, confidence), _alike(sb, joined_b, sa, confidence)
    k1, n1, k2, n2 = (int(x.sum()) for x in (joined_a.events, joined_a.sizes, joined_b.events, joined_b.sizes))
    ra, rb = k1 / n1, k2 / n2
    difference = Interval(
        rb - ra - math.hypot(rb - sb.interval.low, sa.interval.high - ra),
        rb - ra + math.hypot(sb.interval.high - rb, ra - sa.interval.low),
    )
    ratio = None
    if k1 and k2:
        root = math.sqrt(sa.effect * (1 / k1 - 1 / n1) + sb.effect * (1 / k2 - 1 / n2))
        half = NORMAL.inv_cdf(0.5 + confidence / 2) * root
        ratio = Interval(rb / ra * math.exp(-half), rb / ra * math.exp(half))
    return Contrast(_deal(pairs, seed), sa.blocks + sb.blocks, difference, ratio, max(sa.effect, sb.effect))


def _alike(one: Spread, blocks: Blocks, other: Spread, confidence: float) -> Spread:
    """An arm without an event has no bursts to measure: it is taken to burst like the other."""
    if blocks.events.any():
        return one
    return Spread(_exact(0.0, float(blocks.sizes.sum()) / other.effect, confidence), other.effect, one.blocks)


def _chain(arm: dict[str, Any]) -> Any:
    import numpy as np

    return np.concatenate([np.asarray(arm[name]) for name in sorted(arm)])


def _pair(a: Any, b: Any) -> tuple[Blocks, Blocks]:
    """Blocks of one length: as long as make `BLOCKS` of the shorter arm."""
    shorter = min(len(a), len(b))
    length = max(1, -(-shorter // _number(shorter)))
    return cut(a, max(2, round(len(a) / length))), cut(b, max(2, round(len(b) / length)))


def _deal(pairs: Sequence[tuple[Blocks, Blocks]], seed: int) -> float:
    """The share of deals that part the arms at least as far as they are parted; the deal seen is one of them."""
    import numpy as np

    random = np.random.default_rng(seed)
    events, sizes = np.zeros((2, DEALS)), np.zeros((2, DEALS))
    seen_events, seen_sizes = np.zeros(2), np.zeros(2)
    for pair in pairs:
        few = int(len(pair[0].sizes) > len(pair[1].sizes))  # the arm of fewer blocks is dealt, the other is the rest
        both, hand = join(pair), len(pair[few].sizes)
        order = _hands(random, len(both.sizes), hand)
        for total, values in ((events, both.events), (sizes, both.sizes)):
            dealt = values[order].sum(axis=1)
            total[few] += dealt
            total[1 - few] += values.sum() - dealt
        for arm, blocks in enumerate(pair):
            seen_events[arm] += blocks.events.sum()
            seen_sizes[arm] += blocks.sizes.sum()
    apart = np.abs(events[0] / sizes[0] - events[1] / sizes[1])
    seen = abs(seen_events[0] / seen_sizes[0] - seen_events[1] / seen_sizes[1])
    return float((1 + (apart >= seen * (1 - 1e-9)).sum()) / (DEALS + 1))


def _hands(random: np.random.Generator, blocks: int, hand: int) -> NDArray[np.int64]:
    """`DEALS` draws of `hand` of the blocks: those with the lowest of random keys; of very many, one draw at a time."""
    import numpy as np

    if blocks <= AT_ONCE:
        return np.argpartition(random.random((DEALS, blocks)), hand - 1, axis=1)[:, :hand]
    return np.stack([random.choice(blocks, hand, replace=False, shuffle=False) for _ in range(DEALS)])


def burst_effect(mean: float) -> float:
    """The design effect of bursts of 1 + Poisson(mean - 1) events: E[s²] / E[s] of a compound Poisson count."""
    if mean < 1:
        raise ValueError(f"expected a mean burst of at least 1, found {mean:g}")
    return mean + 1 - 1 / mean
