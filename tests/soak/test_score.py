"""The score against a brute-force reading of its definition, and against texts that were really seen."""

import math
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esimd_soak.score import Limits, entropy, find_cycle, longest_run, score

ENGLISH = (
    "The kernel writes its output in place, and the compiler, which was told otherwise, removes the call. Nothing "
    "fails: the buffer holds whatever it held before, the sampler picks a token from it, and the answer arrives on "
    "time with status 200. A reader sees nonsense; a dashboard sees a healthy server that is a little faster. "
)


def slow_run(text: str) -> int:
    best = run = 0
    for i, char in enumerate(text):
        run = run + 1 if i and text[i - 1] == char else 1
        best = max(best, run)
    return best


def slow_cycle(text: str, limits: Limits) -> bool:
    for period in range(1, limits.period + 1):
        run = 0
        for i in range(period, len(text)):
            run = run + 1 if text[i] == text[i - period] else 0
            if run and run + period >= max(limits.cycle, limits.copies * period):
                return True
    return False


@given(st.text(alphabet="ab !\n語", max_size=200) | st.text(alphabet="ab\0", max_size=60))
def test_longest_run_is_the_longest(text: str) -> None:
    run, char = longest_run(text)
    assert run == slow_run(text)
    assert char * run in text


SMALL = st.builds(
    Limits,
    run=st.just(8),
    cycle=st.integers(2, 24),
    copies=st.integers(2, 4),
    period=st.integers(1, 12),
)


@settings(max_examples=400, deadline=None)
@given(
    st.text(alphabet="ab", max_size=20),
    st.text(alphabet="abc", min_size=1, max_size=12),
    st.integers(0, 8),
    st.text(alphabet="abc", max_size=40),
    SMALL,
)
def test_a_cycle_is_found_exactly_when_there_is_one(a: str, unit: str, times: int, b: str, limits: Limits) -> None:
    text = a + unit * times + b
    period, length = find_cycle(text, limits)
    assert (length > 0) == slow_cycle(text, limits)
    if length:
        assert any(
            all(text[i] == text[i - period] for i in range(start + period, start + length))
            for start in range(len(text) - length + 1)
        )


@pytest.mark.parametrize("period", [2, 3, 7, 31, 63, 64, 65, 100, 127, 128])
@pytest.mark.parametrize("offset", [0, 1, 17, 333])
def test_every_period_to_128_at_any_offset(period: int, offset: int) -> None:
    noise = random.Random(period * 1000 + offset)
    unit = "".join(noise.sample(string.printable * 2, period))
    copies = math.ceil(max(192, 3 * period) / period)
    text = (ENGLISH * 2)[:offset] + unit * copies + "\u0000 the end"
    assert score(text).kinds == ("cycle",)
    shortest = max(192, 3 * period) - 1
    assert "cycle" not in score((ENGLISH * 2)[:offset] + (unit * copies)[:shortest] + "\u0000").kinds


def test_a_period_above_128_is_prose_not_a_cycle() -> None:
    unit = "".join(random.Random(1).choices(string.ascii_letters, k=129))
    assert score(unit * 9)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("!" * 512, ("run", "entropy")),
        ("0" * 80, ("run", "entropy")),
        ("Sure, here is the plan: " + "!" * 79, ()),
        ("Sure, here is the plan: " + "!" * 80, ("run",)),
        ("A good beginning. " + "!" * 600, ("run", "entropy")),
        (", " * 200, ("cycle",)),
        ("\n\n," * 200, ("cycle", "entropy")),
        ("I should check that again. " * 12, ("cycle",)),
        ("", ("empty",)),
        (" \n\n", ("empty",)),
        ("4", ()),
        (ENGLISH, ()),
    ],
)
def test_texts_that_were_seen(text: str, kinds: tuple[str, ...]) -> None:
    assert score(text).kinds == kinds


def test_two_letters_at_random_repeat_nothing_and_say_nothing() -> None:
    text = "".join(random.Random(3).choices("||||||/", k=400))
    assert score(text).kinds == ("entropy",)


def test_nan_logprobs_count_and_missing_ones_do_not() -> None:
    assert score(ENGLISH, logprobs=[None, -0.1, math.nan]).kinds == ("nan",)
    assert score(ENGLISH, logprobs=[None, -0.1, -math.inf])


def test_entropy_is_known_for_known_texts() -> None:
    assert entropy("") == entropy("aaaa") == 0
    assert entropy("ab" * 8) == pytest.approx(1)
    assert entropy("abcd" * 8) == pytest.approx(2)
    assert 4 < entropy(ENGLISH) < 4.5


def test_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="copies at least 2"):
        Limits(copies=1)


def test_what_would_count_wrongly_is_refused(tmp_path, capsys):
    import json

    from esimd_soak.commands import main

    good = tmp_path / "a.jsonl"
    good.write_text('{"text": "an ordinary answer"}\n')
    bench = tmp_path / "bench.json"
    bench.write_text(json.dumps({"generated_texts": ["an ordinary answer", ""], "errors": ["", "Connection refused"]}))
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert main.main(["score", str(bench)]) == 0  # the failed request is no generation, and no collapse
    assert main.main(["score", str(good), str(good)]) == 2
    assert "named twice" in capsys.readouterr().err
    assert main.main(["score", str(good), str(empty)]) == 2
    assert "empty.jsonl: " in capsys.readouterr().err
    assert main.main(["score", "--run", "0", str(good)]) == 2
