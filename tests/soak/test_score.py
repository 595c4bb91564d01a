"""The score against a brute-force reading of its definition, and against texts that were really seen."""

import json
import math
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esimd_soak.score import Limits, score
from esimd_soak.score.repeats import agreement, entropy, find_cycle, longest_run, tail_cycle

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
    for period in range(2, limits.period + 1):
        run = 0
        for i in range(period, len(text)):
            run = run + 1 if text[i] == text[i - period] else 0
            enough = run and run + period >= max(limits.cycle, limits.copies * period)
            if enough and len(set(text[i - run - period + 1 : i + 1])) > 1:
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
    period=st.integers(2, 12),
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
    period, length = find_cycle(text, limits.cycle, limits.copies, limits.period)
    assert (length > 0) == slow_cycle(text, limits)
    if length:
        assert any(
            all(text[i] == text[i - period] for i in range(start + period, start + length))
            for start in range(len(text) - length + 1)
        )


@given(st.text(alphabet="abc", max_size=40), st.text(alphabet="abcd", min_size=16, max_size=60), st.integers(2, 6))
def test_the_end_that_repeats_itself(a: str, unit: str, times: int) -> None:
    period, length = tail_cycle(a + unit * times)
    text = a + unit * times
    assert length >= len(unit) * times
    assert all(text[i] == text[i - period] for i in range(len(text) - length + period, len(text)))


@given(st.text(alphabet="abcdefgh é語", min_size=40, max_size=120), st.integers(2, 30))
def test_agreement_is_that_of_its_definition(text: str, longest: int) -> None:
    share, period = agreement(text, longest)
    if period:
        same = sum(text[i] == text[i - period] for i in range(period, len(text))) / (len(text) - period)
        assert share == pytest.approx(same)


PERIODS = [2, 3, 7, 31, 64, 100, 128, 200, 333]


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("offset", [0, 1, 17, 333])
def test_a_loop_of_any_period_at_the_end(period: int, offset: int) -> None:
    noise = random.Random(period * 1000 + offset)
    unit = "".join(noise.choices(string.ascii_letters + " ", k=period))
    copies = math.ceil(max(192, 3 * period) / period)
    assert "cycle" in score((ENGLISH * 2)[:offset] + unit * copies).kinds
    assert "cycle" in score((ENGLISH * 2)[:offset] + unit * copies + "\n").kinds


@pytest.mark.parametrize("rate", [0.02, 0.05])
@pytest.mark.parametrize(
    "unit", ["I should check that again. ", "the lamp is dark and the road is long, so ", "вот так и живём, "]
)
def test_a_loop_with_noise_in_it(rate: float, unit: str) -> None:
    noise = random.Random(len(unit))
    text = "".join(noise.choice("abcdefgh ") if noise.random() < rate else char for char in unit * 20)
    assert "cycle" in score(ENGLISH[:150] + text).kinds


@pytest.mark.parametrize(
    "rule", ["=" * 100, "-" * 120, "*" * 80, "─" * 90, "+" + "-" * 100 + "+", "-=" * 50, "#" * 150]
)
@pytest.mark.parametrize("tail", ["", "\nThat is all there is to say about the matter for this week, I am afraid."])
def test_a_ruler_is_no_collapse(rule: str, tail: str) -> None:
    rule = rule[: 120 if not tail else 200]
    assert score(f"{ENGLISH}\n{rule}\n{ENGLISH[:80]}\n{rule}{tail}")


@pytest.mark.parametrize("char", list("!?0a|,.-") + ["é", "的", "🎉", "\n", " ", "\u200b"])
@pytest.mark.parametrize("start", ["", ENGLISH, "Sure: "])
def test_one_character_to_the_end(char: str, start: str) -> None:
    assert {"run", "empty"} & set(score(start + char * 300).kinds)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("!" * 512, {"run", "entropy"}),
        ("0" * 80, {"run"}),
        ("Sure, here is the plan: " + "!" * 39, set()),
        ("Sure, here is the plan: " + "!" * 40, {"run"}),
        ("Sure, here is the plan: " + "!" * 79 + " and so on.", set()),
        ("Sure, here is the plan: " + "!" * 80 + " and so on.", {"run"}),
        ("A good beginning. " + "!" * 600, {"run", "entropy"}),
        (", " * 200, {"cycle", "entropy"}),
        ("\n\n," * 200, {"cycle", "entropy"}),
        ("I should check that again. " * 12, {"cycle"}),
        ("", {"empty"}),
        (" \n\n", {"empty"}),
        ("4", set()),
        (ENGLISH, set()),
    ],
)
def test_texts_that_were_seen(text: str, kinds: set[str]) -> None:
    assert kinds <= set(score(text).kinds)
    assert bool(kinds) == bool(score(text).kinds)


def test_two_letters_at_random_repeat_nothing_and_say_nothing() -> None:
    text = "".join(random.Random(3).choices("||||||/", k=400))
    assert "entropy" in score(text).kinds


def test_the_origins_rule_is_the_longest_run_alone() -> None:
    origin = Limits(rule="origin")
    assert score("x" + "!" * 80 + " and on", origin).kinds == ("run",)
    assert score("=" * 80 + "\n" + ENGLISH, origin).kinds == ("run",)
    for text in ("!" * 79, ", " * 300, "", "\ufffd" * 60):
        assert score(text, origin)


TEXTS = Path(__file__).with_name("texts.jsonl")


def labelled(path: Path) -> tuple[list[str], list[str]]:
    """(missed, false alarms) of a file of labelled texts, with what was measured of each."""
    missed, false = [], []
    for line in path.read_text("utf-8").splitlines():
        one = json.loads(line)
        found = score(one["text"], prompt=one.get("prompt"))
        told = f"{one['id']} {one['kind']}: {found.kinds} {found.words()}"
        if one["label"] == "degenerate" and found:
            missed.append(told)
        if one["label"] == "normal" and not found:
            false.append(told)
    return missed, false


def test_a_hundred_labelled_texts() -> None:
    """Labelled before a rule was tried on them: 46 degenerate, 54 normal."""
    labels = [json.loads(line)["label"] for line in TEXTS.read_text("utf-8").splitlines()]
    assert (labels.count("degenerate"), labels.count("normal")) == (46, 54)
    missed, false = labelled(TEXTS)
    assert len(missed) <= 4, missed
    assert len(false) <= 2, false


def test_more_labelled_texts() -> None:
    """Of these 95 the rules, as they were before, missed 6 of 40 and called 4 of 55 degenerate; then they were mended."""
    missed, false = labelled(TEXTS.with_name("texts_more.jsonl"))
    assert (missed, false) == ([], [])


def test_a_third_set() -> None:
    """Of these 84 the rules missed 7 of 35 and called 2 of 49 degenerate at first sight; what is left is told in the docs."""
    missed, false = labelled(TEXTS.with_name("texts_third.jsonl"))
    assert len(missed) <= 2, missed
    assert len(false) <= 1, false


def test_a_prompt_says_which_alphabets_are_expected() -> None:
    russian = "Сегодня утром мы вышли к реке, и туман уже поднимался над водой. Лодка стояла у причала."
    assert score(russian)
    assert score(russian, prompt="Опиши утро.")
    assert score(russian, prompt="Answer in Russian: how was the morning?")
    assert score(russian, prompt="Translate this: In the morning we went to the river.")
    assert score(russian, prompt="How was the morning?").kinds == ("script",)


@pytest.mark.parametrize("tokens", [4, 9, 20, 30, 64, 100, 160, 512])
def test_scaled_limits_can_be_reached_and_honest_text_passes(tokens: int) -> None:
    limits = Limits().scaled(tokens)
    assert score("!" * tokens, limits).kinds
    for size in range(tokens, 4 * tokens, 7):
        assert score(ENGLISH[:size], limits)
    assert Limits().scaled(512) == Limits()


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
