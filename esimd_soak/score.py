"""Text -> Score: is this generation degenerate? Pure; knows no server, no file and no statistics.

A collapse is one character over and over (`!!!!` is token 0, what the sampler picks when every logit is NaN), a short
cycle (`, , , `), or too few different characters. It scores every generation of a load test as it arrives, so each
measure is built from the searches that `str` does in C and costs microseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

KINDS = ("run", "cycle", "entropy", "nan", "empty")


@dataclass(frozen=True, slots=True)
class Limits:
    """When a generation counts as degenerate. Lengths in characters, entropy in bits a character.

    `run` 80 is the origin reports' threshold. A cycle counts from `copies` copies and `cycle` characters on (192: about
    48 tokens, below which tables and lists repeat in honest text); its period goes to `period`.
    """

    run: int = 80
    cycle: int = 192
    copies: int = 3
    period: int = 128
    entropy: float = 1.0
    tail: int = 256

    def __post_init__(self) -> None:
        if min(self.run, self.cycle, self.period, self.tail) < 1 or self.copies < 2 or self.entropy < 0:
            raise ValueError(f"limits must be positive, and copies at least 2: {self}")


@dataclass(frozen=True, slots=True)
class Score:
    """What was measured of one text; `kinds` names the limits that it broke (empty: nothing wrong)."""

    run: int
    char: str
    period: int
    cycle: int
    entropy: float
    kinds: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.kinds


DEFAULT = Limits()


def score(text: str, limits: Limits = DEFAULT, logprobs: Iterable[float | None] | None = None) -> Score:
    """Measures a text, and the log-probabilities of its tokens where the server was asked for them."""
    run, char = longest_run(text)
    period, cycle = find_cycle(text, limits)
    bits = entropy(text[-limits.tail :])
    broken = {
        "run": run >= limits.run,
        "cycle": cycle > 0 and period > 1,  # period 1 is a run, and has its own limit
        "entropy": bits < limits.entropy and len(text) >= limits.run,
        "nan": logprobs is not None and any_nan(logprobs),
        "empty": not text.strip(),
    }
    return Score(run, char, period, cycle, round(bits, 3), tuple(kind for kind in KINDS if broken[kind]))


def longest_run(text: str) -> tuple[int, str]:
    """The length of the longest run of one character, and that character; (0, "") for no text."""
    best, char = (1, text[0]) if text else (0, "")
    if text.isascii():
        # As one long number, xor with itself a byte later leaves zero bytes where neighbours are equal: 20 times as
        # fast as asking for each character.
        number = int.from_bytes(text.encode(), "big")
        changes = (number ^ (number >> 8)).to_bytes(len(text), "big")[1:]
        at = changes.find(b"\0")
        while at >= 0:
            best, char = len(changes) - at - len(changes[at:].lstrip(b"\0")) + 1, text[at]
            at = changes.find(bytes(best), at + best - 1)
        return best, char
    for candidate in set(text):
        at = text.find(candidate * (best + 1))
        while at >= 0:
            best, char = len(text) - at - len(text[at:].lstrip(candidate)), candidate
            at = text.find(candidate * (best + 1), at + best)
    return best, char


def find_cycle(text: str, limits: Limits = DEFAULT) -> tuple[int, int]:
    """(period, length) of a long stretch that repeats itself; (0, 0) when no stretch reaches the limits.

    Exact in its verdict: it finds a stretch whenever one of any period up to `limits.period` exists. In such a stretch
    at least `shared` neighbouring characters equal those one period before, so one of the probes, half as long and
    spaced to fit, lies whole among them and occurs a second time at that distance. Honest text fails every probe.
    """
    shared = limits.cycle + -limits.cycle // limits.copies
    window = max(1, shared // 2)
    best = (0, 0)
    backwards = ""
    covered = 0
    for at in range(0, len(text) - window + 1, max(1, shared - window + 1)):
        if at + window <= covered:
            continue
        probe = text[at : at + window]
        first = max(0, at - limits.period)
        before = text.rfind(probe, first, at + window - 1)
        accepted: list[int] = []
        while before >= 0:
            period = at - before
            if not any(period % known == 0 for known in accepted):
                backwards = backwards or text[::-1]
                end = at + _same(text, at, before)
                start = before - _same(backwards, len(text) - before, len(text) - at)
                if end - start >= max(limits.cycle, limits.copies * period):
                    accepted.append(period)
                    covered = max(covered, end)
                    best = max(best, (end - start, period))
            before = text.rfind(probe, first, before + window - 1)
    return best[1], best[0]


def _same(text: str, a: int, b: int) -> int:
    """How many characters from `a` on equal those from `b` on; gallops, so it takes few comparisons."""
    found, size, limit = 0, 16, len(text) - max(a, b)
    while found < limit:
        size = min(size, limit - found)
        if text[a + found : a + found + size] == text[b + found : b + found + size]:
            found += size
            size *= 2
        elif size == 1:
            break
        else:
            size //= 2
    return found


def entropy(text: str) -> float:
    """Shannon entropy of the characters, in bits a character: 0 for one character, about 4.2 for English."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) + 0.0 if total else 0.0


def any_nan(logprobs: Iterable[float | None]) -> bool:
    """A None is no value (the first prompt token has none), not a NaN."""
    return any(value is not None and value != value for value in logprobs)
