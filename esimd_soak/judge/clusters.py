"""Events that come in bursts: intervals and tests that count a burst as one event, not as many. Pure.

The generations of a server, in the order in which they ended, are cut into equal blocks, whose number is fixed
beforehand (`BLOCKS`). A burst lies within a block or on the edge of two, so that blocks may be taken as independent
where generations may not. Everything random has a fixed seed: the same data give the same numbers.

The interval is that of Korn and Graubard (Survey Methodology 24, 1998, 193-201): the exact binomial interval of
Clopper and Pearson at an effective number of generations, which is the real one over the design effect (the variance
of the rate between blocks over the binomial one, never below 1), reduced by the degrees of freedom that the blocks
leave: as many as a variance of their kurtosis has (Satterthwaite, Biometrics Bulletin 2, 1946; O'Neill, The American
Statistician 68, 2014), since the variance of a few bursts is hardly known. Its upper limit allows for one event more
than was seen; here that is one *burst* more, of a weight that the bursts seen do not exclude, as in the interval for
weighted Poisson counts of Fay and Feuer (Statistics in Medicine 16, 1997). Where none was seen it is `LONGEST`.

The test of two arms is a permutation test over blocks (Pitman, JRSS Supplement 4, 1937; blocks of dependent data
as the units: Künsch, Annals of Statistics 17, 1989): where arms are alike, every deal of the blocks is as likely as the
one seen. The intervals of difference and of ratio are squared and added from those of the arms, plain and in logarithms
(MOVER: Zou and Donner, Statistics in Medicine 27, 2008, which generalizes Newcombe's method 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .stats import TAIL, Interval, Z

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCKS = 40
"""Of an arm. More, and bursts cross their edges; fewer, and the variance between them is a guess."""
LONGEST = 16
"""Events in a burst, supposed of one that may come while too few were seen to say how long they are."""
SHORTEST, FEWEST = 8 * LONGEST, 8
"""Generations in a block, so that few bursts cross an edge; a shorter arm has fewer blocks, but not below `FEWEST`."""
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


def spread(blocks: Blocks, longest: float = LONGEST) -> Spread:
    """The interval of a rate. `longest`: events in a burst, of which too few were seen to exclude it."""
    from scipy.special import betaincinv

    events, n, number = int(blocks.events.sum()), int(blocks.sizes.sum()), len(blocks.sizes)
    if 2 * events > n:  # bursts of what is rare
        found = spread(Blocks(blocks.sizes - blocks.events, blocks.sizes), longest)
        return Spread(Interval(1 - found.interval.high, 1 - found.interval.low), found.effect, number)
    effect, most = design_effect(blocks), number - 1
    shrunk = _shrinkage(most if effect == 1 else min(most, _freedom(blocks))) / effect
    seen = events * shrunk
    low = float(betaincinv(seen, n * shrunk - seen + 1, TAIL)) if events else 0.0
    weight = _next_burst(seen, effect, longest)
    # Of seen bursts and that one: effective number of events, k²/variance as in Kish, and of generations.
    allowed, variance = events + weight, events / shrunk + weight**2
    k, of = allowed**2 / variance, n * allowed / variance
    high = float(betaincinv(k, of - k + 1, 1 - TAIL)) if k < of + 1 else 1.0
    return Spread(Interval(low, high), effect, number)


def _next_burst(seen: float, effect: float, longest: float) -> float:
    """Events in a burst that may come: the upper limit of the mean of exponential lengths, after `seen` of them."""
    from scipy.special import gammaincinv

    most, likely = max(longest, effect), float(gammaincinv(seen, TAIL)) if seen else 0.0
    return most if most * likely <= effect * seen else effect * seen / likely


def _shrinkage(freedom: float) -> float:
    """(z / t)²: what is left of a number of events where the variance has these degrees of freedom."""
    from scipy.special import stdtrit

    return float((Z / stdtrit(freedom, 1 - TAIL)) ** 2) if freedom else 1.0


def _freedom(blocks: Blocks) -> float:
    """Degrees of freedom of the variance between blocks, by its kurtosis."""
    squares = _residuals(blocks) ** 2
    return float(2 / max((squares**2).sum() / squares.sum() ** 2 - 1 / len(squares), 1e-9))


def _residuals(blocks: Blocks) -> NDArray[np.float64]:
    """Events in each block beyond what the rate gives: the linearized ratio estimator."""
    return blocks.events - blocks.events.sum() / blocks.sizes.sum() * blocks.sizes  # type: ignore[no-any-return]


def design_effect(blocks: Blocks) -> float:
    """The variance of the rate between blocks over the binomial one (Kish, Survey Sampling, 1965), at least 1."""
    events, n, number = int(blocks.events.sum()), int(blocks.sizes.sum()), len(blocks.sizes)
    rate = events / n
    if number < 2 or not 0 < rate < 1:
        return 1.0
    variance = number / (number - 1) * float((_residuals(blocks) ** 2).sum()) / n**2
    return max(1.0, variance / (rate * (1 - rate) / n))


def contrast(a: dict[str, Any], b: dict[str, Any]) -> Contrast:
    """Two arms: card -> one truth value a generation, in order.

    Where both arms have the same cards, blocks are dealt within each card, since cards differ by themselves. Blocks are
    of one length in both arms, so that one stands for another.
    """
    strata = sorted(a) if set(a) == set(b) else [""]
    whole_a, whole_b = (arm if strata != [""] else {"": _chain(arm)} for arm in (a, b))
    pairs = [_pair(whole_a[name], whole_b[name]) for name in strata]
    joined_a, joined_b = join([x for x, _ in pairs]), join([y for _, y in pairs])
    sa, sb = (_spread_beside(x, y) for x, y in ((joined_a, joined_b), (joined_b, joined_a)))
    ra, rb = (float(x.events.sum() / x.sizes.sum()) for x in (joined_a, joined_b))
    difference = _mover((rb, *_bounds(sb)), (ra, *_bounds(sa)))
    ratio = None
    if ra and rb:
        logs = ([math.log(x) if x else -math.inf for x in (r, *_bounds(s))] for r, s in ((rb, sb), (ra, sa)))
        ratio = Interval(*map(math.exp, _mover(*logs)))
    return Contrast(_deal(pairs), sa.blocks + sb.blocks, Interval(*difference), ratio, max(sa.effect, sb.effect))


def _spread_beside(one: Blocks, other: Blocks) -> Spread:
    """An arm without an event has no bursts to measure: it is taken to burst like the other."""
    if one.events.any() or not other.events.any():
        return spread(one)
    effect = design_effect(other)
    return replace(spread(one, effect), effect=effect)


def _bounds(found: Spread) -> tuple[float, float]:
    return found.interval.low, found.interval.high


def _mover(one: Iterable[float], other: Iterable[float]) -> tuple[float, float]:
    """The limits of `one` minus `other`, each a value with its limits."""
    (b, b_low, b_high), (a, a_low, a_high) = one, other
    return b - a - math.hypot(b - b_low, a_high - a), b - a + math.hypot(b_high - b, a - a_low)


def _chain(arm: dict[str, Any]) -> Any:
    import numpy as np

    return np.concatenate([np.asarray(arm[name]) for name in sorted(arm)])


def _pair(a: Any, b: Any) -> tuple[Blocks, Blocks]:
    """Blocks of one length: as long as make `BLOCKS` of the shorter arm."""
    shorter = min(len(a), len(b))
    length = max(1, -(-shorter // _number(shorter)))
    return cut(a, max(2, round(len(a) / length))), cut(b, max(2, round(len(b) / length)))


def _deal(pairs: Sequence[tuple[Blocks, Blocks]]) -> float:
    """The share of deals that part the arms at least as far as they are parted; the deal seen is one of them."""
    import numpy as np

    random = np.random.default_rng(0)
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
