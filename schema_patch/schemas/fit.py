"""A schema with other annotations in as many characters as it has, for a text that has no room to grow. Pure text.

What is taken out is white space that torch's parser does not need; what is too short is filled with it. Where named
alias sets do not fit, `Tensor!` does with one character more, and that often in the place of the blank behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from schema_patch.model import Effect

from . import annotate, grammar
from .annotate import Returns, TextEdit
from .grammar import Schema

LEFT, ANYWHERE = range(2)
STYLES = ((False, True), (True, True), (True, False))  # bare, and tied to the result
WORDS = frozenset({"ident", "number"})


class NoRoom(ValueError):
    """`lacking`: how many characters the shortest form has too many."""

    def __init__(self, lacking: int) -> None:
        super().__init__(f"{lacking} more byte{'' if lacking == 1 else 's'} needed than its text has")
        self.lacking = lacking


def annotated(schema: Schema, effect: Effect, end: int | None = None) -> str:
    """The text that says what the operator does, as long as the one it has and the same from `end` on.

    Alias sets are named where that fits; else only the one that the result refers to; else none. Blanks that a stripped
    annotation left are filled by one of its size. Raises NoRoom.
    """
    lacking = 0
    ways = [annotate.plan(schema, effect, Returns.ALIAS, bare=bare, tied=tied) for bare, tied in STYLES]
    for edits, where in (*((edits, LEFT) for edits in ways), *((edits, ANYWHERE) for edits in ways)):
        try:
            return in_place(schema.text, edits, end, where)
        except NoRoom as error:
            lacking = error.lacking
    raise NoRoom(lacking)


def stripped(schema: Schema) -> str:
    """The text without write annotations: blanks stand where they stood."""
    blanks = [TextEdit(edit.start, edit.end, " " * (edit.end - edit.start)) for edit in annotate.strip(schema)]
    return annotate.apply(schema.text, blanks)


def in_place(text: str, edits: Sequence[TextEdit], end: int | None = None, where: int = ANYWHERE) -> str:
    """The text after some edits, as long as it was and the same from `end` on. Raises NoRoom.

    `where`: which white space may go; that right behind the edits alone, if it is what they LEFT. Where an edit lies
    behind `end`, what follows from there on becomes a comment.
    """
    end = len(text) if end is None else end
    tail, behind = text[end:], _positions(edits)
    if all(edit.end <= end for edit in edits):
        return _fitted(annotate.apply(text[:end], edits), tail, end, behind, where) + tail
    if not end or "\n" in tail:
        raise NoRoom(len(tail) + 1)
    return _fitted(annotate.apply(text, edits), "", end - 1, behind, where) + f"#{tail}"  # a comment to torch


def _fitted(head: str, tail: str, size: int, behind: set[int], where: int) -> str:
    """What stands before `tail` in so many characters, white space taken out or filled in."""
    if len(head) < size:
        at = max(behind)
        head = head[:at] + " " * (size - len(head)) + head[at:]
    gone = {*islice(_spare(head + tail, len(head), behind, where), len(head) - size)}
    if len(head) - len(gone) > size:
        raise NoRoom(len(head) - len(gone) - size)
    return "".join(letter for at, letter in enumerate(head) if at not in gone)


def _positions(edits: Sequence[TextEdit]) -> set[int]:
    """Where the new text of each edit ends, once all are made."""
    found, shift = set(), 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        shift += len(edit.new) - (edit.end - edit.start)
        found.add(edit.end + shift)
    return found


def _spare(text: str, end: int, behind: set[int], where: int) -> Iterator[int]:
    """The characters of white space that torch does not need, those first that are missed least."""
    gaps = [gap for gap in _gaps(text) if gap.end <= end]
    for gap in gaps:  # what a stripped annotation left
        if gap.start in behind:
            yield from range(gap.start + gap.before_word, gap.end)
    if where == LEFT:
        return
    for gap in gaps:
        if gap.start not in behind:
            yield from range(gap.start + 1, gap.end)
    for rank in range(4):
        yield from (gap.start for gap in gaps if not gap.needed and gap.rank == rank)


class _Gap(NamedTuple):
    """White space between tokens. `needed`: one of it keeps two words apart; `rank`: how much it is missed."""

    start: int
    end: int
    needed: bool
    before_word: bool
    rank: int


def _gaps(text: str) -> Iterator[_Gap]:
    before, kind, last = "", "", 0
    for token in grammar.tokens(text):
        start, end = last, token.span.start
        if end > start and not {"#", "\\"} & {*text[start:end]}:
            rank = (
                0 if token.kind == "end" or not before else 1 if "->" in (before, token.text) else 2 + (before != ",")
            )
            word = token.kind in WORDS
            yield _Gap(start, end, kind in WORDS and word, word, rank)
        before, kind, last = token.text, token.kind, token.span.end
