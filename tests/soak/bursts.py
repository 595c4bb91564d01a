"""Simulated arms whose collapses come in bursts, and what the statistics make of them.

python tests/soak/bursts.py [REPEATS]: the tables of docs/soak.md, on all processors. It needs numpy, scipy and this
repository, nothing else. The tests take the same function with few repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from esimd_soak.judge import clusters, stats

RATE = 0.0025
BURSTS = (1, 2, 4, 8, 16)
SIZES: dict[str, Callable[[np.random.Generator, float, int], np.ndarray]] = {
    "Poisson": lambda random, mean, number: 1 + random.poisson(mean - 1, number),
    "geometric": lambda random, mean, number: random.geometric(1 / mean, number),
}
"""How many collapses a burst has, by its mean."""


@dataclass(frozen=True)
class Case:
    """`apart`: neighbours in a burst are so many generations apart: servers answer several at once."""

    n: int
    mean: int
    rate: float = RATE
    sizes: str = "Poisson"
    apart: int = 1


@dataclass(frozen=True)
class Shares:
    """Of all repeats. `coverage`: the interval holds the true rate; `around_zero`, `around_one`: those of difference
    and ratio hold 0 and 1; `false`: identical arms are called different. `exact` and `z`: coverage and false
    differences of methods that know no bursts."""

    coverage: float
    around_zero: float
    around_one: float
    false: float
    exact: float
    z: float


def arm(random: np.random.Generator, case: Case) -> np.ndarray:
    """Generations, of which a share collapses in bursts; what reaches beyond the end goes on at the beginning."""
    found = np.zeros(case.n, bool)
    number = random.poisson(case.n * case.rate / case.mean)
    starts = random.integers(0, case.n, number)
    for start, size in zip(starts, SIZES[case.sizes](random, case.mean, number), strict=True):
        found[(start + case.apart * np.arange(size)) % case.n] = True
    return found


def simulate(case: Case, repeats: int) -> Shares:
    """Two identical arms, again and again; the seed follows from the case."""
    random = np.random.default_rng([case.n, case.mean, case.apart, *case.sizes.encode()])
    arms = [(arm(random, case), arm(random, case)) for _ in range(repeats)]
    rate = -np.expm1(-case.rate)  # a generation is spared by all bursts, of which a Poisson number may cover it
    counts = np.zeros(6)
    for a, b in arms:
        found, interval = clusters.contrast({"": a}, {"": b}), clusters.spread(clusters.cut(a)).interval
        exact, ratio = stats.clopper_pearson(int(a.sum()), case.n), found.ratio_interval
        counts += (
            interval.low <= rate <= interval.high,
            found.difference_interval.low <= 0 <= found.difference_interval.high,
            ratio is None or ratio.low <= 1 <= ratio.high,
            found.p < 0.05,
            exact.low <= rate <= exact.high,
            stats.two_proportions(int(a.sum()), case.n, int(b.sum()), case.n)[1] < 0.05,
        )
    return Shares(*(counts / repeats))


CASES = [
    *(Case(n, mean) for n in (13000, 61248) for mean in BURSTS),
    *(Case(n, 16, rate) for n, rate in ((2000, RATE), (2000, 0.01), (2000, 0.05), (5000, 0.05), (61248, 0.0005))),
    *(
        Case(n, mean, rate, "geometric")
        for n, rate in ((13000, RATE), (13000, 0.01), (61248, RATE))
        for mean in (4, 16)
    ),
    *(Case(n, 16, RATE, "geometric", 3) for n in (5000, 13000, 61248)),
]


def _row(case: Case, repeats: int) -> str:
    clusters.DEALS = 999
    x = simulate(case, repeats)
    kind = f"{case.sizes}{f', every {case.apart}rd' if case.apart > 1 else ''}"
    shares = " | ".join(f"{share:.1%}" for share in (x.coverage, x.around_zero, x.around_one, x.false, x.exact, x.z))
    return f"| {case.n:,} | {case.rate:.2%} | {kind} | {case.mean} | {shares} |"


def main(repeats: int) -> None:
    print("| generations an arm | rate | burst | mean | coverage | of 0 | of 1 | called different | exact | z |")
    print("|" + "---|" * 10, flush=True)
    with ProcessPoolExecutor() as pool:
        for row in pool.map(_row, CASES, [repeats] * len(CASES)):
            print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
