"""Repetition that is a loop, told from repetition that is layout. Knows shapes of text; no server and no prompt.

A repetition that still goes on where the text ends is a loop. One that ends, and after which the text goes on, is
layout when it is made of what rulers, tables and numbers are made of; a repetition of words is a loop wherever it
stands, once it is long enough. Each function gives its reason in words, or nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise

from . import repeats

RULER = frozenset("-=_*~#.+·•─━═│┃|╌┄░▒▓█▁▔—– \t>/\\")
SHORT = 24
"""Characters: no run in honest text that ends with it is so long."""
WIDE = 200
"""Characters: no ruler, bar or row of digits in honest text is longer."""
LINE = 120
"""At the end of a text, a whole line of one ruler character may be so long."""
LONG_COPY = 400
"""A passage of so many characters is not said twice, word for word and at once."""
MANY_ROWS = 512
MEASURABLE = 96
"""Characters, below which agreement may be chance."""
NOISY, MARKED, SAID_AGAIN, STAMMERED = 0.7, 0.6, 0.6, 0.6
"""Honest prose agrees with itself a period later in up to 0.3 of its characters, a song in 0.65; it repeats up to 0.4
of its word triples, and a refrain says up to half of its words twice over."""
COMPRESSED = 1.7
_WORD = re.compile(r"[^\W\d_]{2,}|[^\x00-\u024f\W\d_]")
_DATA = re.compile(r"\b(?:true|false|null|none|nan|nil|inf)\b|</?\w[^>]*>|0x[0-9a-f]*|&\w+;", re.IGNORECASE)
_DRAWN = re.compile(r"[^ .,;:!?'\"’。，、！？\-\w]|[\d_]")
_LAID_OUT = re.compile(r"[\d\n|]")
_CLOSERS = "\"'`)]}>.。 \n"


def at_end(limit: int) -> int:
    """The limit of a run where the text ends in it: half the other, since it is what a collapse near the end leaves."""
    return max(limit // 2, min(limit, SHORT))


def run(text: str, limit: int) -> str:
    """Why a run of one character is no layout."""
    body = text.rstrip()
    if len(text) - len(body) >= at_end(limit):
        return f"ends in {len(text) - len(body)} spaces or line ends"
    if body and (why := _run_at_end(body, limit)):
        return why
    for match in re.finditer(rf"(.)\1{{{max(1, limit - 1)},}}", body, re.DOTALL):
        char, length = match[1], len(match[0])
        drawn = char in RULER or char.isspace() or char.isdigit()
        if (length > WIDE or not drawn) and not _in_blob(body, match.start(), match.end()):
            return f"{length} times {char!r}"
    return ""


def _run_at_end(body: str, limit: int) -> str:
    char = body[-1]
    length = len(body) - len(body.rstrip(char))
    number = char.isdigit() and body[-length - 1 :][:1] in "0123456789.x,"
    if length < (limit if number else at_end(limit)):
        return ""
    whole_line = length == len(body) or body[-length - 1] == "\n"
    blank = char in "_." and length <= limit
    if (char in RULER and whole_line and length <= LINE and limit >= LINE // 2) or (blank and not whole_line):
        return "" if length < len(body) else f"nothing but {length} times {char!r}"
    return f"ends in {length} times {char!r}"


def _in_blob(text: str, start: int, end: int) -> bool:
    """Whether a run lies inside encoded data: one long word with much else in it."""
    left = re.search(r"[A-Za-z0-9+/=_-]*\Z", text[max(0, start - 256) : start])
    right = re.match(r"[A-Za-z0-9+/=_-]*", text[end : end + 256])
    return len(set((left[0] if left else "") + (right[0] if right else ""))) >= 16


def cycle(text: str, limit: int, copies: int, period: int) -> str:
    """Why a stretch that repeats itself, or nearly so, is no layout."""
    for end in (text, text.rstrip(), text.rstrip(_CLOSERS)):
        distance, length = repeats.tail_cycle(end)
        if distance <= 1 or (period and distance > period):
            continue
        worded = _worded(end[-length:], distance)
        open_ = worded or len(end) >= len(text.rstrip())  # a list that was closed has ended
        if open_ and _loops_at_end(end, distance, length, limit, copies, worded):
            return f"ends in {length} characters of period {distance}: {_short(end[-distance:])}"
    for start, stop, distance in repeats.cycles(text, limit, copies, period):
        times, unit = (stop - start) / distance, text[start : start + distance]
        worded = _worded(text[start:stop], distance)
        data = _LAID_OUT.search(unit) or _DATA.search(text[start:stop])
        loop = stop - start >= 2 * limit or times >= 8 if worded else not data
        if loop and not RULER.issuperset(unit):
            return f"{stop - start} characters of period {distance}: {_short(unit)}"
    return _stammer(text, limit) or _nearly(text.rstrip(_CLOSERS), limit)


def _loops_at_end(text: str, distance: int, length: int, limit: int, copies: int, worded: bool) -> bool:
    unit, times = text[-distance:], length / distance
    if worded:
        short = (times >= 5 and length >= max(2, limit * 5 // 8)) or (times >= 8 and length >= max(2, limit // 3))
        return short or (length >= limit and times >= copies) or length - distance >= LONG_COPY
    if times < copies:
        return False
    if (
        RULER.issuperset(unit)
        and length <= WIDE
        and ("\n" + text)[: len(text) - length + 1].endswith(("\n", "\n|", "\n+"))
    ):
        return False
    rows = "|" in unit or ("\n" in unit and re.search(r"\d", unit))
    return length >= (MANY_ROWS if rows else limit // 2)


def _stammer(text: str, limit: int) -> str:
    """Words said several times over, one after the other."""
    words = [word for word in re.findall(r"[^\W\d_]+", _DATA.sub("", text[-2 * limit :]).lower()) if len(word) > 1]
    again = sum(a == b for a, b in pairwise(words))
    if len(words) >= 24 and again >= STAMMERED * len(words):
        return f"{again} of the last {len(words)} words are the word before"
    return ""


def _nearly(text: str, limit: int) -> str:
    """A loop with noise in it: the last characters agree with those a period before, or the same words come again."""
    if limit < MEASURABLE:
        return ""
    for size in {min(len(text), part * limit) for part in (1, 2, 8)}:
        tail = text[-size:]
        if size < limit * 5 // 8 or repeats.compressed(tail) < (COMPRESSED if size <= limit else 1.4 * COMPRESSED):
            continue  # honest prose, in which the search would find nothing
        if _drawn(tail) > 0.2 or len(_DATA.findall(tail)) > 4 or max(map(tail.count, set(tail))) > size / 2:
            continue
        share, period = repeats.agreement(tail, min(len(tail) // 3, LONG_COPY))
        if share >= (NOISY if _WORD.search(tail) else MARKED) and period > 1:
            return f"{share:.0%} of the last {len(tail)} characters repeat those {period} before"
        words = re.findall(r"\w+", tail.lower())
        triples = list(zip(words, words[1:], words[2:], strict=False))
        if len(triples) >= 40 and (again := 1 - len(set(triples)) / len(triples)) >= SAID_AGAIN:
            return f"{again:.0%} of the last {len(triples)} word triples were said before"
    return ""


def few_characters(tail: str, bits: float, least: float, limit: int) -> str:
    """Why so few different characters at the end of a text are no drawing."""
    if bits >= least or len(tail) < limit:
        return ""
    body = tail.rstrip()
    words = len(_WORD.findall(body))
    lines = body.splitlines()
    if len(set(lines)) >= 4 and RULER.issuperset("".join(lines)) and len(max(lines, key=len)) <= LINE:
        return ""  # a drawing
    if body and (words >= 3 or re.search(r"\d\W*$", body)) and len(max(lines, key=len)) <= LINE:
        return ""  # a form, a table of contents, rows of numbers
    return f"{bits:.2f} bits a character in the last {len(tail)}"


def _worded(stretch: str, distance: int) -> bool:
    """Whether words are repeated, and not true, null, 0x00 or tags: those stand in data."""
    whole = re.sub(r"^\w+|\w+$", "", stretch[: 3 * distance + 16])  # a word that the stretch cuts is none
    return bool(_WORD.search(_DATA.sub("", whole or stretch)))


def _drawn(text: str) -> float:
    """The share of characters that structured text is made of: neither letters, nor spaces, nor a sentence's marks."""
    return len(_DRAWN.findall(text)) / len(text)


def _short(unit: str) -> str:
    return repr(unit if len(unit) <= 40 else unit[:37] + "…")
