"""A text and the bytes of a file that spell it, in C++ or in Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schema_patch.model import Edit, Span

SIMPLE = {ord(k): ord(v) for k, v in zip("ntabfvr\"'\\?", "\n\t\a\b\f\v\r\"'\\?", strict=True)}


class Unreadable(ValueError):
    """The bytes are no string literal that we can map; the message says why."""


@dataclass(frozen=True, slots=True)
class MappedText:
    """The text of adjacent literals and, for each character, the bytes of the file that spell it."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, Span]]) -> MappedText:
        """From characters, each with its bytes."""
        found = list(pairs)
        return cls("".join(char for char, _ in found), tuple(span for _, span in found))

    def edits(self, start: int, end: int, new: str) -> list[Edit]:
        """The edits that replace text[start:end] by `new`, leaving quotes, comments and line breaks between pieces.

        An insertion goes behind the character before it, so that it stays in that character's literal.
        """
        data = new.encode("ascii")
        if start == end:
            at = self.spans[start - 1].end
            return [Edit(Span(at, at), data)]
        runs: list[Span] = []
        for span in self.spans[start:end]:
            if runs and runs[-1].end == span.start:
                runs[-1] = Span(runs[-1].start, span.end)
            else:
                runs.append(span)
        return [Edit(run, data if index == 0 else b"") for index, run in enumerate(runs)]
