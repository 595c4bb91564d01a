"""Every number of the origin reports whose counts are given, and the formulas against independent ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from esimd_soak.judge import stats

COUNTS = st.integers(1, 20000).flatmap(lambda n: st.tuples(st.integers(0, min(n, 60)), st.just(n)))
ORIGIN_RATES = [  # events, generations, per cent as published
    (26, 10560, "0.246"),
    (22, 10176, "0.216"),
    (162, 61248, "0.264"),
    (7, 3264, "0.214"),
    (15, 10176, "0.147"),
    (20, 10176, "0.197"),
    (42, 12960, "0.324"),
    (32, 13056, "0.245"),
]


@pytest.mark.parametrize(("k", "n", "published"), ORIGIN_RATES)
def test_origin_rates(k: int, n: int, published: str) -> None:
    assert f"{100 * k / n:.3f}" == published
    exact, score = stats.clopper_pearson(k, n), stats.wilson(k, n)
    assert exact.low < k / n < exact.high
    assert score.low < k / n < score.high


def test_origin_comparisons() -> None:
    z, p = stats.two_proportions(42, 12960, 32, 13056)
    assert f"{z:.2f}" == "1.20"
    assert f"{p:.2f}" == "0.23"
    assert f"{stats.two_proportions(22, 10176, 15, 10176)[1]:.2f}" == "0.25"
    z, p = stats.two_proportions(42, 12960, 24, 12960)  # 0.324 % against 0.185 %, two cards in sequence
    assert (f"{z:.2f}", f"{p:.3f}") == ("2.22", "0.027")


def test_origin_bounds_of_clean_runs() -> None:
    assert f"{100 * stats.upper_bound(0, 7296):.3f}" == "0.041"
    assert f"{100 * stats.clopper_pearson(0, 7296).high:.4f}" == "0.0505"
    assert f"{100 * stats.upper_bound(0, 3552):.3f}" == "0.084"
    assert f"{100 * stats.upper_bound(0, 1536):.3f}" == "0.195"


def test_origin_sample_sizes() -> None:
    assert [stats.clean_size(rate) for rate in (0.002, 0.0015, 0.0005)] == [1497, 1996, 5990]
    # "At 0.2 %, 13 thousand requests cannot resolve a factor of 1.5."
    assert stats.power_of(13000, 0.002, 1.5) < 0.4
    assert stats.sample_size(0.002, 1.5) > 3 * 13000 * 0.7
    # 3,072 burst-scoped generations looked clean, 576 continuous ones showed 0.69 %.
    assert f"{100 * 4 / 576:.2f}" == "0.69"
    assert stats.fisher(0, 3072, 4, 576) < 0.001


@settings(deadline=None, max_examples=60)
@given(COUNTS)
def test_clopper_pearson_solves_its_definition(counts: tuple[int, int]) -> None:
    k, n = counts
    found = stats.clopper_pearson(k, n)
    if k:
        assert scipy_stats.binom.sf(k - 1, n, found.low) == pytest.approx(0.025, rel=1e-6)
    if k < n:
        assert scipy_stats.binom.cdf(k, n, found.high) == pytest.approx(0.025, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(COUNTS)
def test_wilson_is_where_the_score_test_turns(counts: tuple[int, int]) -> None:
    k, n = counts
    found, z = stats.wilson(k, n), 1.959963984540054

    def excess(rate: float) -> float:
        return (k / n - rate) ** 2 - z * z * rate * (1 - rate) / n

    if k:
        assert found.low == pytest.approx(optimize.brentq(excess, 1e-15, k / n - 1e-9), rel=1e-6)
    if k < n:
        assert found.high == pytest.approx(optimize.brentq(excess, k / n + 1e-9, 1 - 1e-15), rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(COUNTS, COUNTS)
def test_z_squared_is_the_uncorrected_chi_square(a: tuple[int, int], b: tuple[int, int]) -> None:
    z, p = stats.two_proportions(*a, *b)
    table = [[a[0], a[1] - a[0]], [b[0], b[1] - b[0]]]
    if not all(map(sum, zip(*table, strict=True))):
        assert (z, p) == (0, 1)
        return
    known = scipy_stats.chi2_contingency(table, correction=False)
    assert z * z == pytest.approx(known.statistic, rel=1e-6, abs=1e-9)
    assert p == pytest.approx(known.pvalue, rel=1e-6, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(st.tuples(st.integers(0, 12), st.integers(12, 300)), st.tuples(st.integers(0, 12), st.integers(12, 300)))
def test_fisher_is_the_sum_of_tables_no_likelier(a: tuple[int, int], b: tuple[int, int]) -> None:
    total, events = a[1] + b[1], a[0] + b[0]

    def chance(k: int) -> float:
        return math.comb(a[1], k) * math.comb(b[1], events - k) / math.comb(total, events)

    support = range(max(0, events - b[1]), min(events, a[1]) + 1)
    expected = sum(c for k in support if (c := chance(k)) <= chance(a[0]) * (1 + 1e-9))
    assert stats.fisher(*a, *b) == pytest.approx(expected, rel=1e-6)


def test_effect_and_its_interval_against_published_examples() -> None:
    # Newcombe 1998, table II, method 10: 56/70 - 48/80 = 0.2, 95 % 0.0524 to 0.3339.
    found = stats.compare(48, 80, 56, 70)
    assert found.difference == pytest.approx(0.2)
    assert (round(found.difference_interval.low, 4), round(found.difference_interval.high, 4)) == (0.0524, 0.3339)
    ratio = scipy_stats.contingency.relative_risk(56, 70, 48, 80)
    known = ratio.confidence_interval(0.95)
    assert found.ratio_interval is not None
    assert (found.ratio, found.ratio_interval.low, found.ratio_interval.high) == pytest.approx(
        (ratio.relative_risk, known.low, known.high)
    )
    assert stats.compare(0, 100, 3, 100).ratio is None


def test_sample_size_and_power_agree_with_simulation() -> None:
    n = stats.sample_size(0.0025, 1.5)
    assert stats.power_of(n, 0.0025, 1.5) == pytest.approx(0.8, abs=0.001)
    random = np.random.default_rng(5)
    a, b = random.binomial(n, 0.0025, 4000), random.binomial(n, 0.00375, 4000)
    found = sum(stats.two_proportions(int(x), n, int(y), n)[1] < 0.05 for x, y in zip(a, b, strict=True))
    assert found / 4000 == pytest.approx(0.8, abs=0.025)


def test_exact_interval_covers_and_the_one_sided_bound_too() -> None:
    random = np.random.default_rng(7)
    drawn = [int(k) for k in random.binomial(5000, 0.002, 2000)]
    inside = sum(stats.clopper_pearson(k, 5000).low <= 0.002 <= stats.clopper_pearson(k, 5000).high for k in drawn)
    assert inside / 2000 >= 0.945
    assert sum(stats.upper_bound(k, 5000) >= 0.002 for k in drawn) / 2000 >= 0.94


def test_a_constant_rate_is_not_called_bursts_more_often_than_it_should() -> None:
    random = np.random.default_rng(11)
    dispersed, gapped = 0, 0
    for _ in range(200):
        found = stats.clustering(np.flatnonzero(random.random(10000) < 0.004).tolist(), 10000, draws=500)
        assert found is not None
        dispersed += found.dispersion_p < 0.05
        gapped += found.greenwood_p < 0.05
    assert dispersed <= 20
    assert gapped <= 20


def test_dispersion_and_gaps_of_a_known_case() -> None:
    # Bins of 10 generations: 3, 1 and 1 events. Their variance 4/3 over their mean 5/3; gaps 1 1 1 12 10 6 of 31.
    found = stats.clustering([0, 1, 2, 14, 24], 30)
    assert found is not None
    assert found.bins == 3
    assert found.dispersion == pytest.approx((4 / 3) / (5 / 3))
    assert found.greenwood == pytest.approx(sum(gap**2 for gap in (1, 1, 1, 12, 10, 6)) / 31**2 / (2 / 7))
    assert (found.median_gap, found.shortest_gap) == (5.5, 1)


def test_many_events_take_the_normal_distribution_and_agree_with_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(17)
    for _ in range(3):
        events = np.unique(random.integers(0, 200000, 2200)).tolist()
        quick = stats.clustering(events, 200000)
        with monkeypatch.context() as patch:
            patch.setattr(stats, "MANY", 10**6)
            simulated = stats.clustering(events, 200000, draws=2000)
        assert quick is not None
        assert simulated is not None
        assert quick.greenwood_p == pytest.approx(simulated.greenwood_p, abs=0.03)


def test_bursts_are_called_bursts() -> None:
    random = np.random.default_rng(13)
    starts = random.integers(0, 9900, 6)
    events = np.unique((starts[:, None] + np.arange(0, 60, 10)).ravel())
    found = stats.clustering(events.tolist(), 10000)
    assert found is not None
    assert found.dispersion > 2
    assert found.dispersion_p < 0.01
    assert found.greenwood_p < 0.01
    assert found.shortest_gap <= 10


def test_too_few_events_and_impossible_counts() -> None:
    assert stats.clustering([1, 2, 3, 4], 100) is None
    with pytest.raises(ValueError, match="found 3/2"):
        stats.wilson(3, 2)
    with pytest.raises(ValueError, match="found 0/0"):
        stats.clopper_pearson(0, 0)
    with pytest.raises(ValueError, match="ratio other than 1"):
        stats.sample_size(0.002, 1)
    with pytest.raises(ValueError, match="within 100"):
        stats.clustering([1, 2, 3, 4, 100], 100)
