"""C++ string literals as bytes: what they say, and which byte of the file says it. Knows no grammar but this one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schema_patch.model import Span
from schema_patch.text.mapped import SIMPLE, MappedText, Unreadable

OPENING = re.compile(rb'(?P<prefix>u8|[LuU])?(?P<raw>R)?"')
NUMERIC = re.compile(rb"[0-7]{1,3}|x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}")
SPLICE = re.compile(rb"\\\r?\n")


def read(source: bytes, literals: Sequence[Span]) -> MappedText:
    """The joined text of literals that stand at these places. Raises Unreadable."""
    return MappedText.of(pair for literal in literals for pair in _decode(source, literal))


def _decode(source: bytes, literal: Span) -> list[tuple[str, Span]]:
    opening = OPENING.match(source, literal.start)
    if not opening or opening.end() > literal.end:
        raise Unreadable("not a string literal")
    if opening["prefix"] not in (None, b"u8"):
        raise Unreadable(f"a literal with prefix {opening['prefix'].decode()} is no char string")
    if opening["raw"]:
        return _decode_raw(source, opening.end(), literal.end)
    end = literal.end - 1
    if end < opening.end() or source[end : end + 1] != b'"':
        raise Unreadable("the literal does not end")
    found: list[tuple[str, Span]] = []
    at = opening.end()
    while at < end:
        splice = SPLICE.match(source, at, end)
        if splice:
            at = splice.end()
        elif source[at] == ord("\\"):
            code, stop = _escape(source, at + 1, end)
            found.append((chr(code), Span(at, stop)))
            at = stop
        elif source[at] in b"\r\n":
            raise Unreadable("a line break inside the literal")
        else:
            # A byte is a character here: schemas are ASCII, and offsets must not depend on an encoding.
            found.append((chr(source[at]), Span(at, at + 1)))
            at += 1
    return found


def _escape(source: bytes, at: int, end: int) -> tuple[int, int]:
    if at < end and source[at] in SIMPLE:
        return SIMPLE[source[at]], at + 1
    match = NUMERIC.match(source, at, end)
    if not match:
        raise Unreadable(f"unknown escape \\{source[at : at + 1].decode('latin-1')}")
    digits = match.group().lstrip(b"xuU")
    code = int(digits, 8 if match.group()[0] in b"01234567" else 16)
    if code > 0x10FFFF:
        raise Unreadable("an escape beyond Unicode")
    return code, match.end()


def _decode_raw(source: bytes, at: int, end: int) -> list[tuple[str, Span]]:
    opening = source.find(b"(", at, end)
    if opening < 0:
        raise Unreadable("a raw literal without its parenthesis")
    closing = b")" + source[at:opening] + b'"'
    if not source.endswith(closing, opening + 1, end):
        raise Unreadable("the raw literal does not end")
    inside = range(opening + 1, end - len(closing))
    return [(chr(source[i]), Span(i, i + 1)) for i in inside]
