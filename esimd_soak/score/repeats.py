"""Runs, cycles and entropy of a text: exact searches, built from those that `str` does in C. Knows no limits."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator


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


def find_cycle(text: str, length: int, copies: int, period: int) -> tuple[int, int]:
    """(period, length) of the longest stretch that `cycles` finds; (0, 0) for none. Period 1 is a run and no cycle."""
    best = max(((end - start, p) for start, end, p in cycles(text, length, copies, period)), default=(0, 0))
    return best[1], best[0]


def cycles(text: str, length: int, copies: int, period: int = 0) -> Iterator[tuple[int, int, int]]:
    """(start, end, period) of stretches of at least `length` characters and `copies` copies, period 2 to `period`.

    `period` 0: any. Exact in its verdict: it finds a stretch whenever one exists, though not every stretch. In such a
    stretch at least `shared` neighbouring characters equal those one period before, so one of the probes, half as long
    and spaced to fit, lies whole among them and occurs a second time at that distance. Honest text fails every probe.
    """
    period = period or max(1, len(text) // copies)
    shared = length + -length // copies
    window = max(1, shared // 2)
    backwards = ""
    covered = 0
    for at in range(0, len(text) - window + 1, max(1, shared - window + 1)):
        if at + window <= covered:
            continue
        probe = text[at : at + window]
        first = max(0, at - period)
        before = text.rfind(probe, first, at + window - 1)
        accepted: list[int] = []
        while before >= 0:
            distance = at - before
            if not any(distance % known == 0 for known in accepted):
                backwards = backwards or text[::-1]
                end = at + _same(text, at, before)
                start = before - _same(backwards, len(text) - before, len(text) - at)
                if end - start >= max(length, copies * distance):
                    accepted.append(distance)
                    covered = max(covered, end)
                    if distance > 1:  # a run, which has a limit of its own
                        yield start, end, distance
            before = text.rfind(probe, first, before + window - 1)


def tail_cycle(text: str, shortest: int = 16) -> tuple[int, int]:
    """(period, length) of the longest end of the text that repeats itself; (0, 0) when its last characters are new."""
    probe, best = text[-shortest:], (0, 0)
    if len(probe) < shortest:
        return 0, 0
    backwards = text[::-1]
    at = text.rfind(probe, 0, len(text) - 1)
    while at >= 0:
        distance = len(text) - shortest - at
        if not best[1] or distance % best[1]:
            best = max(best, (_same(backwards, 0, distance) + distance, distance), key=lambda x: x[0])
        at = text.rfind(probe, 0, at + shortest - 1)
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


def agreement(text: str, longest: int) -> tuple[float, int]:
    """(share, period): the largest share of characters that equal the one a period before, for periods to `longest`.

    Compares low bytes, for all periods at once: unlike characters agree by chance once in 256.
    """
    import numpy as np

    data = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint8)[::4].astype(np.int16)
    periods = np.arange(1, min(longest, len(data) // 2) + 1)
    beyond = np.concatenate((data[1:], np.full(len(periods), -1, np.int16)))
    later = np.lib.stride_tricks.sliding_window_view(beyond, len(data))
    shares = (later == data).sum(axis=1) / (len(data) - periods)
    best = (0.0, 0)
    for share, period in zip(shares.tolist(), periods.tolist(), strict=True):
        if share > best[0] + 0.02:  # a multiple of a period agrees as well
            best = (share, period)
    return best


def entropy(text: str) -> float:
    """Shannon entropy of the characters, in bits a character: 0 for one character, about 4.2 for English."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) + 0.0 if total else 0.0


def compressed(text: str) -> float:
    """Bytes over those that zlib makes of them."""
    data = text.encode("utf-8", "replace")
    return len(data) / len(zlib.compress(data)) if data else 1.0
