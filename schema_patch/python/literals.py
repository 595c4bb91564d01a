"""Python string literals as bytes: what they say, and which byte of the file says it. Knows no grammar but this one."""

from __future__ import annotations

import re

from schema_patch.model import Span
from schema_patch.text.mapped import SIMPLE, MappedText, Unreadable

PIECE = re.compile(
    rb"""(?P<prefix>[uUrR]?)(?P<quote>\"{3}|'{3}|"|')(?P<body>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)""", re.DOTALL
)
BETWEEN = re.compile(rb"(?:\s|\\\r?\n|#[^\n]*|[()+])*")
UNIT = re.compile(rb"\\\r?\n|\\.|\r\n|.", re.DOTALL)


def read(source: bytes, where: Span, text: str) -> MappedText:
    """The string expression at `where`: literals side by side or added with `+`, which together say `text`.

    Raises Unreadable where a character cannot be traced to the bytes that spell it.
    """
    chars: list[str] = []
    spans: list[Span] = []
    at = _behind(source, where.start, where.end)
    while at < where.end:
        piece = PIECE.match(source, at, where.end)
        if piece is None:
            raise Unreadable("it is not made of plain string literals alone")
        for char, span in _decode(source, piece):
            chars.append(char)
            spans.append(span)
        at = _behind(source, piece.end(), where.end)
    if "".join(chars) != text:
        raise Unreadable("its bytes do not spell the text that Python reads")
    return MappedText(text, tuple(spans))


def _behind(source: bytes, at: int, end: int) -> int:
    match = BETWEEN.match(source, at, end)
    return match.end() if match else at


def _decode(source: bytes, piece: re.Match[bytes]) -> list[tuple[str, Span]]:
    raw = piece["prefix"] in (b"r", b"R")
    found: list[tuple[str, Span]] = []
    for unit in UNIT.finditer(source, piece.start("body"), piece.end("body")):
        spelt, span = unit.group(), Span(*unit.span())
        if spelt == b"\r\n":
            found.append(("\n", span))
        elif len(spelt) == 1:
            if spelt[0] > 127:
                raise Unreadable("it is not ASCII")
            found.append((chr(spelt[0]), span))
        elif raw:
            found += [(chr(byte), Span(span.start + n, span.start + n + 1)) for n, byte in enumerate(spelt)]
        elif spelt[1:] not in (b"\n", b"\r\n"):  # a line break behind a backslash says nothing
            if spelt[1] not in SIMPLE or spelt[1:] == b"?":
                raise Unreadable(f"an escape that is not read: {spelt.decode('latin-1')}")
            found.append((chr(SIMPLE[spelt[1]]), span))
    return found
