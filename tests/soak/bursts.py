"""Simulated arms whose collapses come in bursts, and what the statistics make of them.

python tests/soak/bursts.py [REPEATS]: the table of docs/soak.md. The tests take the same function with few repeats.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from esimd_soak.judge import clusters, stats

RATE = 0.0025


@dataclass(frozen=True)
class Shares:
    """Of all repeats. `coverage`: the interval holds the true rate; `around_zero`: that of the difference holds 0;
    `false`: identical arms are called different. `exact` and `z`: the same of methods that know no bursts."""

    coverage: float
    around_zero: float
    false: float
    exact: float
    z: float


def arm(random: np.random.Generator, n: int, mean: float, rate: float = RATE) -> np.ndarray:
    """`n` generations, of which a share `rate` collapses in bursts of 1 + Poisson(mean - 1) neighbours."""
    found = np.zeros(n, bool)
    for start in random.integers(0, n, random.poisson(n * rate / mean)):
        found[start : start + 1 + random.poisson(mean - 1)] = True
    return found


def simulate(n: int, mean: float, repeats: int) -> Shares:
    """Two identical arms, again and again; the seed follows from the case."""
    random = np.random.default_rng([n, int(mean)])
    counts = np.zeros(5)
    for _ in range(repeats):
        a, b = arm(random, n, mean), arm(random, n, mean)
        found, interval = clusters.contrast({"": a}, {"": b}), clusters.spread(clusters.cut(a)).interval
        exact = stats.clopper_pearson(int(a.sum()), n)
        counts += (
            interval.low <= RATE <= interval.high,
            found.difference_interval.low <= 0 <= found.difference_interval.high,
            found.p < 0.05,
            exact.low <= RATE <= exact.high,
            stats.two_proportions(int(a.sum()), n, int(b.sum()), n)[1] < 0.05,
        )
    return Shares(*(counts / repeats))


def main(repeats: int) -> None:
    print("| generations an arm | mean burst | coverage | identical arms called different | exact | z |")
    print("|---|---|---|---|---|---|")
    for n in (13000, 61248):
        for mean in (1, 2, 4, 8, 16):
            x = simulate(n, mean, repeats)
            print(f"| {n:,} | {mean} | {x.coverage:.1%} | {x.false:.1%} | {x.exact:.1%} | {x.z:.1%} |", flush=True)


if __name__ == "__main__":
    clusters.DEALS = 999
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
