"""Which alphabets a text uses, which it should, and whether its bytes were read in the right encoding. Pure.

Scripts are those of Unicode, by the first word of a character's name; a language that the prompt names stands for its
script, so that a translation is no wrong alphabet.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

NAMED = {
    "Cyrillic": "russian ukrainian bulgarian serbian belarusian macedonian kazakh mongolian cyrillic русск украин",
    "CJK": "chinese mandarin cantonese japanese korean hanzi kanji kana hangul hiragana katakana 中文 日本語 한국어",
    "Greek": "greek greece alphabet",
    "Arabic": "arabic persian farsi urdu quran islam",
    "Hebrew": "hebrew yiddish",
    "Devanagari": "hindi marathi nepali sanskrit devanagari",
    "Thai": "thai thailand",
    "Georgian": "georgian",
    "Armenian": "armenian",
    "Bengali": "bengali bangla",
    "Tamil": "tamil",
    "Latin": "english french german spanish italian portuguese latin translate",
}
ANY = re.compile(r"translat|\blanguages\b|foreign language|alphabet|unicode|multilingual", re.IGNORECASE)
_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA", "HALFWIDTH", "FULLWIDTH")
_RAW = re.compile(r"[\u0120\u010a\u2581]|<0x[0-9A-Fa-f]{2}>|<\|?[a-z_]+\|>|<unk>|<pad>|\[PAD\]|\[UNK\]")
_ODD = frozenset({"Co", "Cn", "Cs"})
ODD_SHARE, SPOILT_SHARE, RAW_SHARE = 0.03, 0.05, 0.05
FEW = 24
"""Letters: a quotation, a name, a word explained."""


@lru_cache(maxsize=8192)
def script(char: str) -> str:
    """The script of a letter: Latin, Cyrillic, CJK, …; empty for what is no letter."""
    if char < "\x80":
        return "Latin" if char.isalpha() else ""
    if not char.isalpha():
        return ""
    first = unicodedata.name(char, "").split(" ", 1)[0]
    if first in _CJK:
        return "CJK"
    return (
        "" if first in ("MODIFIER", "MICRO", "MATHEMATICAL", "SUPERSCRIPT", "FEMININE", "MASCULINE") else first.title()
    )


def shares(text: str) -> dict[str, float]:
    """Script -> its share of the letters, the largest first."""
    if text.isascii():
        return {"Latin": 1.0} if any(map(str.isalpha, text)) else {}
    counts: Counter[str] = Counter()
    for char, n in Counter(text).items():
        if name := script(char):
            counts[name] += n
    total = sum(counts.values())
    return {name: n / total for name, n in counts.most_common()}


def unexpected(text: str, found: dict[str, float], prompt: str | None) -> str:
    """An alphabet that the prompt neither uses nor names; without a prompt, one that a sentence slips into for good."""
    if set(found) <= {"Latin"}:
        return ""
    if prompt is None or not prompt.strip():
        return _slipped(text)
    if ANY.search(prompt):
        return ""
    words = prompt.lower()
    wanted = {"Latin"} | set(shares(prompt))
    wanted |= {name for name, names in NAMED.items() if any(word in words for word in names.split())}
    letters = sum(bool(script(char)) for char in text)
    for part, name in ((text, "the text"), (text[-256:], "its end")):
        strange = {alphabet: share for alphabet, share in shares(part).items() if alphabet not in wanted}
        share = sum(strange.values())
        count = share * (letters if part is text else sum(bool(script(char)) for char in part))
        if share >= 0.3 and count > FEW:
            told = " and ".join(strange)
            return f"{share:.0%} of the letters of {name} are {told}, which the prompt does not ask for"
    return ""


def _slipped(text: str) -> str:
    """The place where a sentence changes its alphabet in the middle and does not come back."""
    letters = [(at, name) for at, char in enumerate(text) if (name := script(char))]
    if len(letters) < 3 * FEW or letters[-1][1] == "Latin":
        return ""
    last = letters[-1][1]
    change = next((i for i in range(len(letters) - 1, -1, -1) if letters[i][1] != last), -1)
    if change < FEW or len(letters) - change <= 2 * FEW or letters[change][1] == "CJK":
        return ""
    between = text[letters[change][0] + 1 : letters[change + 1][0]]
    if between.strip() or "\n" in between:
        return ""
    return f"a sentence turns from {letters[change][1]} to {last} letters and stays so"


def encoding(text: str) -> str:
    """Replacement characters, code points that mean nothing, UTF-8 read as something else, raw tokenizer pieces."""
    for part in (text, text[-256:]):
        if len(part) >= 32 and (why := _misread(part)):
            return why
    return ""


def _misread(text: str) -> str:
    raw = _RAW.findall(text)
    if len(raw) >= 6 and len(raw) / max(1, len(text.split()), len(text) / 12) >= RAW_SHARE * 4:
        return f"{len(raw)} raw pieces of a tokenizer, such as {raw[0]!r}"
    if text.isascii() and not any(char < " " and char not in "\n\r\t\f\x1b" for char in set(text)):
        return ""
    odd = sum(
        n
        for char, n in Counter(text).items()
        if char == "\ufffd" or unicodedata.category(char) in _ODD or (char < " " and char not in "\n\r\t\f\x1b")
    )
    if odd / len(text) >= ODD_SHARE and odd >= 4:
        return f"{odd} of {len(text)} characters are replacement or control characters"
    accented = len(re.findall(r"[\xc0-\xff]", text))
    if accented >= FEW and accented >= 0.6 * len(re.findall(r"[^\W\d_]", text)):
        return f"{accented} accented letters and hardly any other: another alphabet that was read as Latin-1"
    spoilt = sum(map(len, _reread(text)))
    if spoilt / len(text) >= SPOILT_SHARE or (spoilt >= 12 and spoilt / len(text) >= 0.015):
        return f"{spoilt} of {len(text)} characters are UTF-8 that was read as another encoding"
    return ""


def _reread(text: str) -> list[str]:
    """The stretches that become text once their bytes are taken back and read as UTF-8.

    Ordinary text hardly ever does: an accented letter alone, or two of them, are no UTF-8 sequence.
    """
    found = []
    for piece in re.findall(r"[\x80-\uffff]{2,}", text):
        for codec in ("latin-1", "cp1252", "cp1251", "gbk"):
            data = _bytes(piece, codec)
            good = data.decode("utf-8", "ignore")
            least = 8 if codec == "gbk" else 2  # two characters of Chinese are UTF-8 now and then
            if len(data) >= least and len(good.encode()) >= 0.8 * len(data) and not good.isascii():
                found.append(piece)
                break
    return found


def _bytes(piece: str, codec: str) -> bytes:
    if codec == "cp1252":  # its five holes are shown as the control characters of Latin-1
        return b"".join(c.encode("latin-1") if c < "\xa0" else c.encode("cp1252", "ignore") for c in piece)
    data = piece.encode(codec, "ignore")
    return data if len(data) >= len(piece) * 0.8 else b""
