"""Speculative decoding: the origin report's numbers from every source, every kind of collapse told apart."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from running import Soak, plan
from server import Faults, Served, healthy, stale

from esimd_soak.judge import acceptance, analysis, drafts
from esimd_soak.judge.drafts import Counts
from esimd_soak.load import watch
from esimd_soak.model import ToolError

# Run B and run C of the origin report: accepted, draft tokens, drafts, positions.
B = Counts(2680, 8040, 6908, (2443, 2315, 2150))
C = Counts(6618, 19854, 31, (31, 0, 0))


def bench(counts: Counts) -> str:
    return json.dumps(
        {
            "completed": 8,
            "spec_decode_acceptance_rate": 100 * counts.rate,
            "spec_decode_acceptance_length": counts.length,
            "spec_decode_num_drafts": counts.drafts,
            "spec_decode_draft_tokens": counts.draft_tokens,
            "spec_decode_accepted_tokens": counts.accepted,
            "spec_decode_per_position_acceptance_rates": list(counts.positions),
        }
    )


def console(counts: Counts) -> str:
    rows = [
        ("Acceptance rate (%):", f"{100 * counts.rate:.2f}"),
        ("Acceptance length:", f"{counts.length:.2f}"),
        ("Drafts:", counts.drafts),
        ("Draft tokens:", counts.draft_tokens),
        ("Accepted tokens:", counts.accepted),
    ]
    lines = ["============ Serving Benchmark Result ============", "Successful requests:                     8"]
    lines += ["---------------Speculative Decoding---------------", *(f"{a:<40} {b:<10}" for a, b in rows)]
    lines += ["Per-position acceptance (%):"]
    lines += [f"{f'  Position {i}:':<40} {100 * p:<10.2f}" for i, p in enumerate(counts.positions)]
    return "\n".join([*lines, "=" * 50])


def log(*intervals: Counts) -> str:
    return "\n".join(
        "(APIServer pid=1) INFO 09-01 12:00:00 [metrics.py:100] SpecDecoding metrics: "
        f"Mean acceptance length: {c.length:.2f}, Accepted throughput: 1.00 tokens/s, "
        f"Drafted throughput: 2.00 tokens/s, Accepted: {c.accepted} tokens, Drafted: {c.draft_tokens} tokens, "
        f"Per-position acceptance rate: {', '.join(f'{p:.3f}' for p in c.positions)}, "
        f"Avg Draft acceptance rate: {100 * c.rate:.1f}%"
        for c in intervals
    )


def page(counts: Counts) -> str:
    labels = 'engine="0",model_name="m"'
    lines = []
    for name, value in (
        ("num_drafts", counts.drafts),
        ("num_draft_tokens", counts.draft_tokens),
        ("num_accepted_tokens", counts.accepted),
    ):
        lines += [f"# TYPE vllm:spec_decode_{name} counter", f"vllm:spec_decode_{name}_total{{{labels}}} {value:.1f}"]
    name = "vllm:spec_decode_num_accepted_tokens_per_pos"
    lines.append(f"# TYPE {name} counter")
    lines += [f'{name}_total{{{labels},position="{i}"}} {v:.1f}' for i, v in enumerate(counts.per_position)]
    lines.append(f'{name}_created{{{labels},position="0"}} 1.78e+09')
    return "\n".join([*lines, "# HELP other words", "# TYPE other gauge", "other 3"]) + "\n"


@pytest.mark.parametrize("write", [bench, console, log, page])
def test_origin_numbers_from_every_source(soak: Soak, tmp_path: Path, write: object) -> None:
    (tmp_path / "b, of B").write_text(write(B))  # type: ignore[operator]
    (tmp_path / "c").write_text(write(C))  # type: ignore[operator]
    assert soak("acceptance", tmp_path / "b, of B") == 0
    assert "6,908 of 8,040 draft tokens in 2,680 drafts = 85.92 %, length 3.58" in soak.out
    assert "position 0: 91." in soak.out
    assert "healthy" in soak.out
    assert soak("acceptance", tmp_path / "c") == 1
    assert "31 of 19,854 draft tokens in 6,618 drafts = 0.16 %, length 1.00" in soak.out
    assert "position 0: 0.47 %" in soak.out or write is log  # the log prints three digits: 0.005
    assert "position 1: 0.00 %, given the one before 0.00 %" in soak.out
    assert "collapse: every position is rejected from the first step" in soak.out
    assert "stale" in soak.out


def test_origin_positions_of_run_b() -> None:
    assert [f"{100 * p:.2f}" for p in B.positions] == ["91.16", "86.38", "80.22"]
    assert [f"{100 * p:.1f}" for p in B.conditional] == ["91.2", "94.8", "92.9"]


def test_baseline_against_candidate(soak: Soak, tmp_path: Path) -> None:
    (tmp_path / "b").write_text(bench(B))
    (tmp_path / "c").write_text(console(C))
    assert soak("acceptance", "--baseline", tmp_path / "b", "--candidate", tmp_path / "c") == 1
    for code in ("acceptance-rate", "acceptance-collapse", "acceptance-position"):
        assert code in soak.out
    assert soak("acceptance", "--baseline", tmp_path / "b", "--candidate", tmp_path / "b") == 0
    assert "no fall beyond the limit" in soak.out
    assert soak("acceptance", tmp_path / "b", "--min-rate", 0.9) == 1
    assert soak("acceptance", "--baseline", tmp_path / "b") == 2


def test_deltas_around_a_workload(soak: Soak, tmp_path: Path) -> None:
    (tmp_path / "before").write_text(page(B))
    (tmp_path / "after").write_text(page(B + C))
    assert soak("acceptance", tmp_path / "after", "--before", tmp_path / "before") == 1
    assert "31 of 19,854" in soak.out
    assert soak("acceptance", tmp_path / "before", "--before", tmp_path / "after") == 2
    assert "restarted in between" in soak.err
    assert soak("acceptance", tmp_path / "before", "--before", tmp_path / "before") == 2
    assert "was there a workload?" in soak.err


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        (B, "healthy"),
        (C, "collapse"),
        (Counts(165, 495, 0, (0, 0, 0)), "collapse"),
        (Counts(1000, 3000, 830, (820, 10, 0)), "later positions collapse"),
        (Counts(1000, 3000, 300, (200, 70, 30)), "low"),
        (Counts(1000, 3000, 100, (100, 0, 0)), "low"),
        (Counts(100, 100, 64, ()), "healthy"),
    ],
)
def test_kinds_of_collapse_are_told_apart(counts: Counts, kind: str) -> None:
    assert acceptance.diagnose([counts]).kind == kind


def test_a_fall_with_load_is_no_replay_defect() -> None:
    alone, crowd = Counts(1000, 3000, 1161, (600, 361, 200)), Counts(10000, 30000, 2910, (2000, 700, 210))
    found = acceptance.diagnose([replace(alone, load=1), replace(crowd, load=48)])
    assert found.kind == "falls with load"
    assert "38.7% at 1 in flight, 9.7% at 48" in found.meaning
    assert acceptance.diagnose([replace(C, load=1), replace(C, load=48)]).kind == "collapse"


def test_when_it_died(soak: Soak, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log(B, B, C, C))
    assert soak("acceptance", tmp_path / "log") == 1
    assert "died at interval 3 of 4" in soak.out
    (tmp_path / "log").write_text(log(C, C))
    assert soak("acceptance", tmp_path / "log") == 1
    assert "dead in all 2 intervals, from the first on" in soak.out
    (tmp_path / "log").write_text(log(*[B] * 50, C, *[B] * 9))
    assert soak("acceptance", tmp_path / "log") == 1
    assert "dead in intervals 51 to 51 of 60" in soak.out
    nothing = log(C).replace("Accepted: 31 tokens, Drafted: 19854", "Accepted: 0 tokens, Drafted: 0")
    (tmp_path / "log").write_text(nothing)
    assert soak("acceptance", tmp_path / "log") == 2
    assert "nothing measured" in soak.err


WELL, DEAD = Counts(1000, 3000, 1900, (800, 600, 500)), Counts(1000, 3000, 10, (10, 0, 0))
SPARSE = Counts(3, 9, 0, (0, 0, 0))  # of which nothing can be said


def judged(intervals: list[Counts]) -> acceptance.Acceptance:
    return acceptance.diagnose([replace(one, when=when) for when, one in enumerate(intervals)])


@given(st.lists(st.sampled_from([WELL, DEAD, SPARSE]), min_size=1, max_size=12))
@example([WELL, DEAD, *[SPARSE] * 6])  # what looks dead and what does not, in one block at every size
def test_a_stretch_of_time_is_dead_whatever_the_rest_is(intervals: list[Counts]) -> None:
    found = judged(intervals)
    if WELL in intervals and DEAD in intervals:
        assert found.kind == "collapse in time"
        first = intervals.index(DEAD)
        died = WELL in intervals[:first] and WELL not in intervals[first:]
        assert ("died at" in found.meaning) == died or SPARSE in intervals
    elif WELL in intervals:
        assert found.kind == "healthy"
    else:
        assert found.kind == ("collapse" if DEAD in intervals or len(intervals) > 11 else "too few drafts")


DRAFTERS = [(0.91, 0.95, 0.93), (0.67, 0.93, 0.99), (0.76, 0.82, 0.69, 0.75, 0.58), (0.80, 0.69, 0.75), (0.64,)]
"""What published logs tell of drafters that are well: the share accepted at each position of the drafts that get there."""


def noisy(random: Random, drafter: tuple[float, ...], drafts: int, dead: int | None) -> Counts:
    """An interval: its text is easier or harder to draft than others. `dead`: the position from which none is accepted."""
    left, accepted = drafts, list[int]()
    for position, share in enumerate(drafter):
        rate = random.betavariate(8 * share, 8 * (1 - share)) if dead is None or position < dead else 0.004
        left = sum(random.random() < rate for _ in range(left))
        accepted.append(left)
    return Counts(drafts, drafts * len(drafter), sum(accepted), tuple(accepted))


def told(interval: list[Counts], source: str) -> str:
    """The lines of all engines: with vLLM's line before that names the engine, with the process's name, with neither."""
    text = ""
    for number, one in enumerate(interval):
        line = log(one)
        if source == "process":
            line = line.replace("APIServer pid=1", f"EngineCore_DP{number} pid={40 + number}")
        elif source == "line before":
            text += f"(APIServer pid=1) INFO 09-01 12:00:00 [loggers.py:271] Engine {number:03}: Running: 1 reqs\n"
        text += f"{line}\n"
    return text


@pytest.mark.parametrize("source", ["line before", "process", ""])
def test_no_part_hides_behind_others_and_noise_is_none(source: str) -> None:
    """Engines that log in turn, of each interval 20 to 40 drafts: one dies from a position on, for good or a while."""
    collapsed = []
    for seed in range(60):
        random = Random(seed)
        drafter, several, number = random.choice(DRAFTERS), random.randint(1, 4), random.randint(24, 40)
        which, dead = random.randrange(several), random.randrange(len(drafter)) if seed % 2 else None
        first = random.randrange(number // 2)
        text, tries = "", 0.0
        for when in range(number):
            ill = dead is not None and first <= when < first + number // 2
            engines = [
                noisy(random, drafter, random.randint(20, 40), dead if ill and n == which else None)
                for n in range(several)
            ]
            text += told(engines, source)
            tries += engines[which].reached[dead][1] if ill and dead is not None else 0
        found = acceptance.diagnose(drafts.read(text))
        if 0 < tries < (100 if source else 200):  # of so few it may be told or not
            continue
        assert found.collapsed == (dead is not None), (seed, found)
        collapsed.append(found)
        if dead is not None:
            assert ("later positions" in found.meaning + found.kind) == (dead > 0), found
            assert several == 1 or not source or f"{which}" in found.meaning.partition(":")[0], found
            assert "interval" in found.meaning
    assert {one.kind for one in collapsed} >= {"healthy", "later positions collapse"}


def test_drafts_of_unlike_length_do_not_reach_every_position() -> None:
    """n-gram drafts end where the text that they repeat does: of 5 positions, 2 are reached on the average."""
    well = Counts(1000, 2000, 1000, (600, 400, 0, 0, 0))
    assert acceptance.diagnose([well]).kind == "healthy"
    assert acceptance.diagnose(drafts.of_log(log(well))).kind == "healthy"
    assert acceptance.diagnose([Counts(1000, 4600, 600, (600, 0, 0, 0, 0))]).kind == "later positions collapse"


def test_a_part_of_which_too_little_is_seen_is_named() -> None:
    found = acceptance.diagnose([replace(WELL, engine="engine 0"), replace(SPARSE, engine="engine 1")])
    assert found.kind == "healthy"
    assert "Not known: engine 1: 9 draft tokens, expected at least 100" in found.meaning
    found = acceptance.diagnose([Counts(300, 900, 25, (25, 0, 0))])
    assert found.kind == "low"
    assert "Not known: position 1: 25 drafts reach it, too few" in found.meaning


@given(st.lists(st.sampled_from([WELL, DEAD, None]), min_size=1, max_size=8))
def test_an_engine_is_dead_whatever_the_others_are(engines: list[Counts | None]) -> None:
    """None: an engine that had nothing to do."""
    lines: dict[str, None] = {}
    for number, counts in enumerate(engines):
        text = page(counts or WELL).replace('engine="0"', f'engine="{number}"')
        lines |= dict.fromkeys(line if counts else re.sub(r"[\d.]+$", "0.0", line) for line in text.splitlines())
    there = [counts for counts in engines if counts]
    values = watch.counters("\n".join(sorted(lines, key=lambda line: not line.startswith("#"))))
    if not there:
        return
    found = acceptance.diagnose(drafts.of_counters(values))
    if DEAD not in there:
        assert found.kind == "healthy"
    elif WELL not in there:
        assert found.kind == "collapse"
    else:
        assert found.kind == "collapse of an engine"
        assert f"engine {engines.index(DEAD)}, model_name m" in found.meaning
    doubled = watch.deltas(values, {key: 2 * value for key, value in values.items()})
    assert drafts.of_counters(doubled) == drafts.of_counters(values)


@pytest.mark.parametrize(
    ("loads", "kind"),
    [
        ({1: WELL, 8: DEAD, 32: WELL}, "falls with load"),
        ({1: DEAD, 8: WELL, 32: WELL}, "falls with few"),
        ({1: WELL, 8: WELL, 32: DEAD}, "falls with load"),
        ({1: DEAD, 8: DEAD}, "collapse"),
        ({1: SPARSE, 8: WELL}, "healthy"),
    ],
)
def test_each_load_is_judged(loads: dict[int, Counts], kind: str) -> None:
    assert acceptance.diagnose([replace(counts, load=load) for load, counts in loads.items()]).kind == kind


@given(st.integers(2, 6), st.data())
def test_positions_after_any_that_is_well(several: int, data: st.DataObject) -> None:
    """Dead from a position on that drafts reach; where they do not reach it, nothing is wrong."""
    first = data.draw(st.integers(1, several))
    rates = [0.8**i for i in range(1, first + 1)] + [0.0] * (several - first)
    positions = tuple(1000 * rate for rate in rates)
    whole = Counts(1000, 1000 * several, round(sum(positions)), positions)
    assert acceptance.diagnose([whole]).kind == ("later positions collapse" if first < several else "healthy")
    short = Counts(1000, 1000 * first, round(sum(positions)), positions)
    assert acceptance.diagnose([short]).kind == "healthy"


def test_of_few_drafts_nothing_is_said(soak: Soak, tmp_path: Path) -> None:
    (tmp_path / "few").write_text(bench(Counts(33, 99, 60, (30, 20, 10))))
    (tmp_path / "b").write_text(bench(B))
    (tmp_path / "c").write_text(bench(C))
    assert soak("acceptance", tmp_path / "few") == 2
    assert "99 draft tokens, expected at least 100" in soak.out
    assert soak("acceptance", "--baseline", tmp_path / "few", "--candidate", tmp_path / "b") == 2
    assert soak("acceptance", "--baseline", tmp_path / "c", "--candidate", tmp_path / "c") == 1
    assert "and the baseline: collapse" in soak.out


@pytest.mark.parametrize("text", ["", "hello", '{"completed": 8}', "{", "--Speculative Decoding--\nDrafts: 3"])
def test_what_says_nothing_is_not_clean(soak: Soak, tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert soak("acceptance", tmp_path / "x") == 2
    assert "expected" in soak.err


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=6).map(lambda x: sorted(x, reverse=True)), st.integers(500, 900)
)
def test_conditionals_multiply_to_the_plain_series(accepted: list[int], drafted: int) -> None:
    counts = Counts(drafted, drafted * len(accepted), sum(accepted), tuple(accepted))
    product = 1.0
    for plain, given_before in zip(counts.positions, counts.conditional, strict=True):
        product = 0.0 if math.isnan(given_before) else product * given_before
        assert product == pytest.approx(plain)
    assert counts.length == pytest.approx(1 + sum(counts.positions))
    assert drafts.of_bench(bench(counts)).accepted == counts.accepted
    assert drafts.of_counters(watch.counters(page(counts))) == [counts]


def test_counts_that_cannot_be() -> None:
    with pytest.raises(ToolError, match="speculative decoding on"):
        Counts(0, 0, 0)
    with pytest.raises(ToolError, match="speculative decoding on"):
        Counts(1, 3, 4)


def test_live_around_a_load(soak: Soak, tmp_path: Path) -> None:
    with Served(Faults(spec=healthy)) as served:
        path = plan(tmp_path, {"url": served.url}, concurrency=4, max_tokens=9, stop={"generations": 100})
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "o") == 0
        assert "257 of 300 draft tokens in 100 drafts" in soak.out
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "p", "--loads", "1,4") == 0
        assert "1 in flight: 257 of 300" in soak.out
    with Served(Faults(spec=stale)) as served:
        path = plan(tmp_path, {"url": served.url}, concurrency=4, max_tokens=9, stop={"generations": 200})
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "q") == 1
        assert "1 of 600 draft tokens" in soak.out
    with Served() as served:
        path = plan(tmp_path, {"url": served.url}, concurrency=4, max_tokens=9, stop={"generations": 8})
        assert soak("acceptance", "--plan", path, "-o", tmp_path / "r") == 2


def test_a_restart_between_two_looks_hides_nothing_else() -> None:
    """Counters that begin again: the interval of the restart is not known, the others are."""
    looks = [watch.counters(page(one)) for one in (WELL, WELL + WELL, WELL, WELL + DEAD)]
    found = acceptance.diagnose(analysis._drafted([dict(look) for look in looks]))
    assert found.kind == "collapse in time"
    assert "died at interval 2 of 2" in found.meaning
    assert analysis._drafted([dict(looks[1]), dict(looks[0])]) == []
