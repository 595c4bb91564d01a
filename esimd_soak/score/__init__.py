"""Text -> Score: is this generation degenerate? Pure; knows no server, no file and no statistics.

Each measure is one that a reader can check by eye, and each is shown beside the verdict:

    run       the longest run of one character (`!!!!` is token 0, what a sampler picks when every logit is NaN)
    cycle     a stretch that repeats itself with some period, or almost does: a loop of words, lines, paragraphs
    entropy   how many different characters the end of the text uses, in bits
    salad     words, alphabets and brackets thrown together, as a sampler without logits throws them
    encoding  bytes shown in the wrong encoding, replacement characters, raw pieces of a tokenizer
    script    an alphabet that neither the prompt uses nor asks for
    nan       a log-probability is NaN
    empty     no text at all

A repetition that ends, and after which the text goes on, may be layout: a ruler, a row of zeros, a refrain. One that
is still going on where the text ends is a loop. The rule `origin` is that of the reports which this kit began with: the
longest run alone, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from . import alphabets, layout, repeats, salad

KINDS = ("run", "cycle", "entropy", "salad", "encoding", "script", "nan", "empty")
SHORT = layout.SHORT
WHOLE = 2**16
"""Characters. Of a longer text the longest run is measured in all of it, everything else in the last so many."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a generation counts as degenerate. Lengths in characters, entropy in bits a character.

    `run` 80 is the origin reports' threshold. A cycle counts from `copies` copies and `cycle` characters on (192: about
    48 tokens, below which tables and lists repeat in honest text); its period goes to `period` (0: any). A repetition
    that goes on where the text ends counts from half these lengths on: it is what a collapse in the last 60 tokens
    leaves. `entropy` is that of the last `tail` characters.
    """

    run: int = 80
    cycle: int = 192
    copies: int = 3
    period: int = 0
    entropy: float = 1.3
    tail: int = 256
    rule: Literal["measures", "origin"] = "measures"

    def __post_init__(self) -> None:
        if min(self.run, self.cycle, self.tail) < 1 or self.copies < 2 or self.entropy < 0 or self.period < 0:
            raise ValueError(f"limits must be positive, and copies at least 2: {self}")

    def scaled(self, tokens: int) -> Limits:
        """These limits for answers of at most `tokens` tokens, of which each may be one character.

        A run must fill half of such an answer, or `SHORT` characters, or all of a shorter one.
        """
        run = min(self.run, max(tokens // 2, min(tokens, SHORT)))
        return replace(self, run=run, cycle=min(self.cycle, self.cycle * run // self.run))

    @property
    def at_end(self) -> int:
        """Characters: a run that the text ends in counts from here on; a shorter text that was cut cannot be judged."""
        return layout.at_end(self.run)


@dataclass(frozen=True, slots=True)
class Score:
    """What was measured of one text; `kinds` names the limits that it broke (empty: nothing wrong).

    `ratio`: characters over compressed bytes (zlib), 1.5 to 2.5 for prose. `period` over `cycle` characters: the
    longest stretch that repeats itself. `scripts`: the alphabets and their shares of the letters.
    """

    run: int
    char: str
    period: int
    cycle: int
    entropy: float
    ratio: float
    scripts: str
    kinds: tuple[str, ...]
    why: str = ""

    def __bool__(self) -> bool:
        return not self.kinds

    def words(self) -> str:
        """Every measure in one line, and the reason."""
        told = [f"longest run {self.run} of {self.char!r}"]
        if self.cycle:
            told.append(f"period {self.period} over {self.cycle} characters")
        told.append(f"entropy {self.entropy:.2f} bits, compressed {self.ratio:.1f} times")
        told += [self.scripts] if self.scripts else []
        return ", ".join(told) + (f"; {self.why}" if self.why else "")


DEFAULT = Limits()


def score(
    text: str, limits: Limits = DEFAULT, logprobs: Iterable[float | None] | None = None, prompt: str | None = None
) -> Score:
    """Measures a text, and the log-probabilities of its tokens where the server was asked for them.

    `prompt`, where it is known, says which alphabets are expected.
    """
    run, char = repeats.longest_run(text)
    text = text[-WHOLE:]
    period, cycle = repeats.find_cycle(text, limits.cycle, limits.copies, limits.period)
    bits = repeats.entropy(text[-limits.tail :])
    shares = alphabets.shares(text)
    found: dict[str, str] = {}
    if limits.rule == "origin":
        if run >= limits.run:
            found["run"] = f"{run} times {char!r}"
    elif text.strip():
        found = _judged(text, limits, bits, shares, prompt)
    else:
        found = {"empty": "no text"} | ({"run": f"nothing but {len(text)} blanks"} if run >= limits.run else {})
    if logprobs is not None and any_nan(logprobs):
        found["nan"] = "a log-probability is NaN"
    ratio = repeats.compressed(text)
    kinds = tuple(kind for kind in KINDS if kind in found)
    why = "; ".join(found[kind] for kind in kinds)
    told = "" if set(shares) <= {"Latin"} else ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return Score(run, char, period, cycle, round(bits, 3), round(ratio, 2), told, kinds, why)


def _judged(text: str, limits: Limits, bits: float, shares: dict[str, float], prompt: str | None) -> dict[str, str]:
    """The kinds that the measures show, each with its reason."""
    reasons = {
        "run": layout.run(text, limits.run),
        "cycle": layout.cycle(text, limits.cycle, limits.copies, limits.period),
        "entropy": layout.few_characters(text[-limits.tail :], bits, limits.entropy, limits.run),
        "salad": salad.salad(text),
        "encoding": alphabets.encoding(text),
        "script": alphabets.unexpected(text, shares, prompt),
    }
    return {kind: why for kind, why in reasons.items() if why}


def any_nan(logprobs: Iterable[float | None]) -> bool:
    """A None is no value (the first prompt token has none), not a NaN."""
    return any(value is not None and value != value for value in logprobs)
