"""apply(bytes, edits) -> bytes. Knows bytes and spans only; every byte outside a span survives."""

from __future__ import annotations

from collections.abc import Iterable

from schema_patch.model import Edit, Span


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes after the edits. Raises ValueError where two edits touch the same bytes or one lies outside."""
    result = source
    for edit in reversed(ordered(source, edits)):
        result = result[: edit.span.start] + edit.new + result[edit.span.end :]
    return result


def inverse(source: bytes, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits that turn apply(source, edits) back into source."""
    shift = 0
    undo: list[Edit] = []
    for edit in ordered(source, edits):
        start = edit.span.start + shift
        undo.append(Edit(Span(start, start + len(edit.new)), source[edit.span.start : edit.span.end]))
        shift += len(edit.new) - (edit.span.end - edit.span.start)
    return tuple(undo)


def ordered(source: bytes, edits: Iterable[Edit]) -> list[Edit]:
    """The edits by position; insertions at one place keep the order in which they were given."""
    result = sorted(edits, key=lambda edit: (edit.span.start, edit.span.end))
    end = 0
    for edit in result:
        if not end <= edit.span.start <= edit.span.end <= len(source):
            raise ValueError(f"edit at {edit.span.start}:{edit.span.end} overlaps another or lies outside the file")
        end = edit.span.end
    return result
