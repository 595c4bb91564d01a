"""Words, alphabets and brackets thrown together, as a sampler without logits throws them. Pure.

Signs that need no model of a language: alphabets that change from word to word, or inside words; brackets that close
nothing; a long row of words with neither everyday words nor a sentence's marks; letters that nobody could pronounce;
nothing but marks, or pictures.
"""

from __future__ import annotations

import re
from itertools import pairwise

from .alphabets import script

WINDOW = 256
"""Characters: about what 60 tokens are."""
_EVERYDAY = frozenset(
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they "
    "which one you were her all she there would their we him been has when who will more no if out so said what "
    "up its about into than them can only other new some could these two may then do first any my now such like "
    "our me even most made after also did before must through a i your how just get us here each very der die das "
    "und ist nicht ein eine zu den mit von auf für dem im sich auch es als werden aus er hat dass sie nach wird "
    "bei wir noch wie einem über zum war haben nur oder aber vor zur bis mehr kann am wer le la les de des et est "
    "un une du en que qui dans pour pas au sur se il elle ce ne plus par avec son sa ses mais ou nous vous je tu "
    "être cette sont aux à el los las y por con para una su al lo como más o pero sus ya este sí porque esta "
    "entre cuando muy sin sobre di che e non per si sono da come anche ma più nel della alla dei gli os um uma "
    "não com foi ao dos seu sua quando muito nos já het een van dat op te zijn voor met niet aan om ook maar bij "
    "nog naar och att som på är av för med till inte ett men var jag det har kan og af til ikke jeg ja oli että "
    "ei hän kun niin mutta myös joka ovat vain sen nyt nie na się z że jest w jak za po tak już od ale co przez v "
    "s ve bir bu için çok ile ben daha gibi mi dan yang ini itu untuk dengan tidak ada dari pada akan và là của "
    "có những các cho không được một trong với người đã ở ra đến nên còn hay thì".split()
)
_OPEN = {")": "(", "]": "[", "}": "{"}


def salad(text: str) -> str:
    """Why the text, or its end, is thrown together; empty when it is not."""
    for part, name in ((text, "the text"), (text[-WINDOW:], "the end")):
        why = next((why for sign in SIGNS if (why := sign(part))), "")
        if why:
            return f"{why} in {name}"
    return ""


def _thrown(text: str) -> str:
    """Three pairs of alphabets that follow each other with nothing, or a space, and no everyday word between them."""
    if text.isascii():
        return ""
    pairs: set[frozenset[str]] = set()
    changes, last, end = 0, "", -9
    for word in re.finditer(r"[^\W\d_]+", text):
        if word[0].lower() in _EVERYDAY:
            last = ""
            continue
        names = [name for char in word[0] if (name := script(char))]
        joined = last and not text[end : word.start()].strip(" \u0300\u0308")
        for before, name in pairwise([last, *names] if joined else names):
            if name != before:
                pairs.add(frozenset((before, name)))
                changes += 1
        last, end = (names[-1] if names else ""), word.end()
    return f"{changes} changes between {len(pairs)} pairs of alphabets" if len(pairs) >= 3 and changes >= 4 else ""


def _mixed(text: str) -> str:
    """Latin letters inside words of another alphabet. A single Greek letter is a formula, CJK has no spaces."""
    if text.isascii():
        return ""
    words = re.findall(r"[^\W\d_]{2,}", text)
    mixed = [word for word in words if len({script(char) for char in word} - {"", "CJK"}) > 1 and len(word) > 2]
    return (
        f"{len(mixed)} words of mixed alphabets, such as {mixed[0]!r}" if len(mixed) >= max(4, len(words) // 12) else ""
    )


def _unclosed(text: str) -> str:
    """Brackets that close nothing. Code that was cut has open ones; only what closes nothing counts."""
    seen: list[str] = []
    closing = wrong = 0
    for char in re.findall(r"[()\[\]{}]", text):
        if char in "([{":
            seen.append(char)
        elif char in _OPEN:
            closing += 1
            if seen and seen[-1] == _OPEN[char]:
                seen.pop()
            else:
                wrong += 1
    if closing < 4 or wrong < 0.6 * closing:
        return ""
    ran_on = len(
        re.findall(r"[a-z][A-Z]|[A-Za-z][^\w\s.,;:!?'\"()\-’/]|[^\w\s.,;:!?'\"(\[{\-‘*_`$#@&<]\s?[A-Za-z]", text)
    )
    return f"{wrong} of {closing} closing brackets close nothing" if ran_on >= len(text) / 40 else ""


def _wordy(text: str) -> str:
    """A row of at least 30 words in which hardly one is an everyday word and hardly one ends a clause."""
    words = text.split()
    if len(words) < 30 or "\n" in text[8:-8].strip() or sum(map(text.count, ".,;:!?")) >= 0.05 * len(words):
        return ""
    plain = [word for word in words if word.strip(".,;:!?\"'()").isalpha() and word[0] < "\u0250"]
    if len(plain) < 30 or len(plain) < 0.9 * len(words):
        return ""
    everyday = sum(word.lower() in _EVERYDAY for word in plain) / len(plain)
    return f"{len(plain)} words without a mark, {everyday:.0%} of them everyday words," if everyday < 0.06 else ""


def _unpronounceable(text: str) -> str:
    """Small Latin letters with hardly a vowel among them: at random one in five is one, in a language one in three."""
    letters = len(re.findall(r"[a-z]", text))
    if letters < 120 or letters + text.count(" ") < 0.9 * len(text):
        return ""
    vowels = sum(map(text.count, "aeiouy")) / letters
    return f"{vowels:.0%} vowels among {letters} letters" if vowels < 0.29 else ""


def _marks(text: str) -> str:
    """A long row of many different marks, or of pictures, and nothing else."""
    marks = re.findall(r"[!-/:-@\[-`{-~]", text)
    if len(marks) >= 120 and len(marks) >= 0.9 * len(text) and len(set(marks)) >= 12:
        return f"{len(marks)} marks and hardly anything else"
    pictures = re.findall(r"[\U0001f000-\U0001faff]", text)
    if len(pictures) >= 60 and len(pictures) >= 0.6 * len(text):
        return f"{len(pictures)} pictures and hardly anything else"
    return ""


SIGNS = (_thrown, _mixed, _unclosed, _wordy, _unpronounceable, _marks)
