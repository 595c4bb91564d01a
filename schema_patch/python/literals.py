"""Python source as bytes: where a node of its tree stands, what a string literal says, and which byte says it."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from collections.abc import Iterator

from schema_patch.model import Location, Span
from schema_patch.text.mapped import SIMPLE, MappedText, Unreadable

PIECE = re.compile(
    rb"""(?P<prefix>[uUrR]?)(?P<quote>\"{3}|'{3}|"|')(?P<body>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)""", re.DOTALL
)
BETWEEN = re.compile(rb"(?:\s|\\\r?\n|#[^\n]*|[()+])*")
UNIT = re.compile(rb"\\\r?\n|\\.|\r\n|.", re.DOTALL)
NEWLINE = re.compile(rb"\r\n|\r|\n")


class PythonText:
    """The bytes of a Python file."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data = data
        self.path = path
        self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0].removesuffix("-sig")
        self.lines = [0] + [match.end() for match in NEWLINE.finditer(data)]

    def offset(self, line: int, column: int) -> int:
        """The byte of a position as `ast` gives it: a line from 1, a column in UTF-8 bytes whatever the encoding."""
        start = self.lines[line - 1]
        if line == 1 and self.data.startswith(codecs.BOM_UTF8):
            start += len(codecs.BOM_UTF8)
        if self.encoding == "utf-8":
            return start + column
        end = self.lines[line] if line < len(self.lines) else len(self.data)
        before = self.data[start:end].decode(self.encoding).encode()[:column]
        return start + len(before.decode().encode(self.encoding))

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> Span:
        last, column = node.end_lineno or node.lineno, node.end_col_offset
        assert column is not None  # ast.parse gives every statement and expression its end
        return Span(self.offset(node.lineno, node.col_offset), self.offset(last, column))

    def where(self, node: ast.expr | ast.stmt) -> Location:
        return Location(self.path, node.lineno, self.span(node).start - self.lines[node.lineno - 1] + 1)


def read(source: bytes, where: Span, text: str) -> MappedText:
    """The string expression at `where`: literals side by side or added with `+`, which together say `text`.

    Raises Unreadable where a character cannot be traced to the bytes that spell it.
    """
    found = MappedText.of(_decode(source, where))
    if found.text != text:
        raise Unreadable("its bytes do not spell the text that Python reads")
    return found


def _decode(source: bytes, where: Span) -> Iterator[tuple[str, Span]]:
    at = where.start
    while (at := BETWEEN.match(source, at, where.end).end()) < where.end:  # type: ignore[union-attr]  # it always does
        piece = PIECE.match(source, at, where.end)
        if piece is None:
            raise Unreadable("it is not made of plain string literals alone")
        for unit in UNIT.finditer(source, *piece.span("body")):
            yield from _spelt(unit.group(), Span(*unit.span()), raw=piece["prefix"] in (b"r", b"R"))
        at = piece.end()


def _spelt(spelt: bytes, span: Span, *, raw: bool) -> Iterator[tuple[str, Span]]:
    """What a unit of a literal says: a character, an escape, a line break."""
    if spelt == b"\r\n":
        yield "\n", span
    elif len(spelt) == 1:
        if spelt[0] > 127:
            raise Unreadable("it is not ASCII")
        yield chr(spelt[0]), span
    elif raw:
        yield from ((chr(byte), Span(span.start + n, span.start + n + 1)) for n, byte in enumerate(spelt))
    elif spelt[1:] not in (b"\n", b"\r\n"):  # a line break behind a backslash says nothing
        if spelt[1] not in SIMPLE or spelt[1:] == b"?":
            raise Unreadable(f"an escape that is not read: {spelt.decode('latin-1')}")
        yield chr(SIMPLE[spelt[1]]), span
