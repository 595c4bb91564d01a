"""Bursts: intervals that cover, a test that is false as often as it says, looks that cost nothing; by simulation.

Seeds are fixed, and each bound leaves room for the error of the simulation (three of its standard deviations). More
repeats: `make soak-simulation`.
"""

from pathlib import Path

import numpy as np
import pytest
import recorded
from bursts import BURSTS, RATE, Case, Shares, arm, simulate
from hypothesis import given
from hypothesis import strategies as st
from running import Soak

from esimd_soak.judge import clusters, looks, stats
from esimd_soak.judge.clusters import Blocks

REPEATS = 150


@pytest.fixture(autouse=True)
def few_deals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "DEALS", 499)


def error(share: float) -> float:
    """Three standard deviations of a simulated share."""
    return 3 * float(np.sqrt(share * (1 - share) / REPEATS))


@pytest.mark.parametrize("mean", BURSTS)
def test_intervals_cover_and_identical_arms_are_seldom_called_different(mean: int) -> None:
    """At the size of the origin's longest run, where there are ten bursts of 16."""
    found = simulate(Case(61248, mean), REPEATS)
    _hold(found)
    if mean >= 4:
        assert found.exact < 0.75, "what was wrong before is no longer simulated"
        assert found.z > 0.2


@pytest.mark.parametrize(
    "case",
    [
        Case(13000, 4),
        Case(13000, 16),
        Case(2000, 8),
        Case(2000, 16, 0.01),
        Case(5000, 16, 0.05, "geometric"),
        Case(13000, 16, RATE, "geometric", apart=3),
    ],
)
def test_few_bursts_hold_as_well(case: Case) -> None:
    """Of two bursts in all, or less than one, of any length, and with healthy neighbours in between."""
    _hold(simulate(case, REPEATS))


def _hold(found: Shares) -> None:
    assert min(found.coverage, found.around_zero, found.around_one) >= 0.95 - error(0.95)
    assert found.false <= 0.05 + error(0.05)


@pytest.mark.parametrize("mean", [1, 4])
def test_the_power_is_the_one_that_power_promises(mean: int) -> None:
    random = np.random.default_rng(200 + mean)
    n = int(stats.sample_size(0.005, 2.0) * clusters.burst_effect(mean))
    found = sum(
        clusters.contrast({"": arm(random, Case(n, mean, 0.005))}, {"": arm(random, Case(n, mean, 0.01))}).p < 0.05
        for _ in range(REPEATS)
    )
    assert found / REPEATS == pytest.approx(0.8, abs=0.04 + error(0.8))


def test_without_bursts_the_interval_is_little_wider_than_the_exact_one() -> None:
    random, widths = np.random.default_rng(7), np.zeros(2)
    for _ in range(50):
        bad = arm(random, Case(13000, 1))
        found, exact = clusters.spread(clusters.cut(bad)).interval, stats.clopper_pearson(int(bad.sum()), 13000)
        widths += found.high - found.low, exact.high - exact.low
    assert 1 < widths[0] / widths[1] < 1.2


def test_of_bursts_never_seen_the_longest_is_allowed_for() -> None:
    """Without an event: at most one burst of 16 more, which is 3.69 (Poisson, 97.5 %) times as much."""
    nothing = clusters.spread(clusters.cut(np.zeros(7296, bool))).interval
    assert (nothing.low, nothing.high) == (0, pytest.approx(16 * 3.69 / 7296, rel=0.01))
    all_of_them = clusters.spread(clusters.cut(np.ones(7296, bool))).interval
    assert (all_of_them.low, all_of_them.high) == (pytest.approx(1 - nothing.high), 1)
    assert nothing.high == pytest.approx(
        clusters.spread(clusters.cut(np.zeros(7296, bool)), longest=1).interval.high * 16, rel=0.01
    )
    assert clusters.spread(clusters.cut(np.zeros(7296, bool)), longest=1).interval == stats.clopper_pearson(0, 7296)


@given(st.lists(st.booleans(), min_size=1, max_size=600), st.sampled_from([1, 2, 7, 16, 200]))
def test_an_interval_holds_its_rate_and_the_exact_one(bad: list[bool], longest: int) -> None:
    blocks = clusters.cut(bad)
    found, exact = clusters.spread(blocks, longest=longest), stats.clopper_pearson(sum(bad), len(bad))
    assert 0 <= found.interval.low <= sum(bad) / len(bad) <= found.interval.high <= 1
    if len(bad) > 20:  # of fewer there are hardly blocks
        assert found.interval.low <= exact.low + 1e-9
        assert found.interval.high >= exact.high - 1e-9


def test_the_design_effect_of_a_known_case() -> None:
    # Ten blocks of 100: two with 5 events. Rate 0.01; residuals 4, 4 and eight of -1: their squares are 40.
    blocks = Blocks(np.array([5, 5, 0, 0, 0, 0, 0, 0, 0, 0]), np.full(10, 100))
    variance = 10 / 9 * 40 / 1000**2
    assert clusters.design_effect(blocks) == pytest.approx(variance / (0.01 * 0.99 / 1000))
    # Bursts of 1 + Poisson(3): E[s²] / E[s] = (16 + 3) / 4.
    assert clusters.burst_effect(4) == pytest.approx(19 / 4)
    assert clusters.burst_effect(1) == 1
    with pytest.raises(ValueError, match="at least 1"):
        clusters.burst_effect(0.5)


def test_blocks_hold_every_generation_and_small_arms_too() -> None:
    for n in (1, 2, 3, 7, 16, 40, 199, 200, 201, 12345):
        blocks = clusters.cut(np.arange(n) % 3 == 0)
        assert int(blocks.sizes.sum()) == n
        assert int(blocks.events.sum()) == len(range(0, n, 3))
        assert int(blocks.sizes.max() - blocks.sizes.min()) <= 1
    assert clusters.contrast({"": np.ones(16)}, {"": np.zeros(16)}).p < 0.01
    assert clusters.contrast({"": np.zeros(5)}, {"": np.zeros(5)}).p == 1
    few, many = np.arange(200) < 20, np.zeros(1_000_000, bool)
    assert clusters.contrast({"": few}, {"": many}).p < 0.01, "a small arm against a large one, in little memory"
    assert clusters.contrast({"": many}, {"": few}).p < 0.01


def test_a_card_is_dealt_with_itself() -> None:
    """Cards of 1 % and 10 %, the same in both arms: blocks that were dealt across them would hide a difference."""
    random = np.random.default_rng(5)
    a = {"0": random.random(4000) < 0.01, "1": random.random(4000) < 0.10}
    b = {"0": random.random(4000) < 0.01, "1": random.random(4000) < 0.14}
    assert clusters.contrast(a, b).p < 0.01
    assert clusters.contrast(a, b) == clusters.contrast(a, b), "the same data, the same p"
    assert clusters.contrast(a, {"2": b["0"], "3": b["1"]}).p > clusters.contrast(a, b).p


def test_levels_of_looks_are_those_of_the_literature() -> None:
    """Critical values of the O'Brien-Fleming spending function, two-sided 5 %, five looks: 4.877 to 2.031."""
    found = [stats.NORMAL.inv_cdf(1 - level / 2) for level in looks.levels(0.05, 5)]
    assert found == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.002)
    assert looks.levels(0.05, 1) == pytest.approx((0.05,), abs=1e-4)


@pytest.mark.parametrize("mean", [1, 4])
def test_looking_costs_nothing_when_it_was_registered(mean: int) -> None:
    random = np.random.default_rng(300 + mean)
    levels, n = looks.levels(0.05, 4), 40000
    spending = peeking = 0
    for _ in range(REPEATS // 2):
        a, b = arm(random, Case(n, mean)), arm(random, Case(n, mean))
        ps = [clusters.contrast({"": a[: n * i // 4]}, {"": b[: n * i // 4]}).p for i in (1, 2, 3, 4)]
        spending += any(p < level for p, level in zip(ps, levels, strict=True))
        peeking += any(p < 0.05 for p in ps)
    assert spending / (REPEATS // 2) <= 0.05 + error(0.05) * 1.5
    assert peeking >= spending


def test_bursts_in_two_runs_are_no_difference(soak: Soak, tmp_path: Path) -> None:
    """40 collapses against 12: z says different; ten bursts of four against three say little."""
    for name, bursts in (("a", 5), ("b", 1)):
        starts = [i * 4000 // bursts + 350 for i in range(bursts)]
        bad = {start + i for start in starts for i in range(8)}
        recorded.run(
            tmp_path / name,
            {"0": (0, 4000)},
            name=name,
            cache=f"/c/{name}",
            bad=bad.__contains__,
        )
    assert soak("compare", tmp_path / "a", tmp_path / "b") == 0
    assert "a: 40/4,000" in soak.out
    assert "b: 8/4,000" in soak.out
    assert "were each collapse alone: two-proportion z = 4.6" in soak.out
    assert "bursts count once" in soak.out
    assert "no difference shown" in soak.out


def test_power_and_bare_counts_take_the_size_of_a_burst(soak: Soak) -> None:
    assert soak("power", "--rate", 0.0025, "--burst", 4, "--generations", 13000) == 0
    assert "148,661 generations an arm" in soak.out
    assert "a design effect of 4.75" in soak.out
    assert soak("power", "--rate", 0.0025, "--burst", 0.2) == 2
    assert soak("compare", "--counts", "42/12960", "24/12960") == 1
    assert soak("compare", "--counts", "42/12960", "24/12960", "--burst", 4) == 0
    assert "bursts of 4" in soak.out
    assert soak("compare", "--counts", "42/12960", "24/12960", "--burst", 0) == 2
