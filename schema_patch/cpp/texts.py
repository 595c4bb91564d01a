"""Which literals of a file make the text of an argument: joined, handed on through constants and wrappers of strings.

Knows how C++ spells a constant string; follows only what this file defines, once, and nothing that is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from schema_patch.model import Span

from .constants import LITERALS, Constants
from .syntax import children, part, text

STRINGS = re.compile(r"(?:(?:std|c10|torch)::)*(?:string|string_view|basic_string)")
# Whose first argument is the schema or the operator's name.
WRAPPERS = frozenset({"TORCH_SELECTIVE_SCHEMA", "TORCH_SELECTIVE_NAME", "torch::schema", "c10::schema", "schema"})
GIVERS = frozenset({"c_str", "data", "str"})
LITERAL = re.compile(rb'(?:u8|[LuU])?(?:R"([^(\s]{0,16})\(.*?\)\1"|"[^"\\\n]*(?:\\.[^"\\\n]*)*")', re.DOTALL)
SPACE = re.compile(rb"(?:\s|//[^\n]*|/\*.*?\*/|\\\r?\n)*", re.DOTALL)
WORD = re.compile(rb"[A-Za-z_]\w*")
ENDS = (b",", b")", b"}", b";")  # of an expression
DEEPEST = 8  # constants that stand for constants


class Unclear(Exception):
    """The text is not made of literals of this file alone; the argument is what is in the way, as written."""


class Texts:
    """Finds the literals behind the expressions of one file."""

    def __init__(self, source: bytes, root: Node) -> None:
        self.source = source
        self.constants = Constants(source, root)

    def of(self, node: Node, depth: int = 0) -> Iterator[Span]:
        """The literals that are the text of an expression, in order. Raises Unclear."""
        node = self.unwrapped(node)
        kind = node.type
        if kind in LITERALS and self._goes_on(node.end_byte):
            yield from self.adjacent(node.start_byte)
        elif kind in ("string_literal", "raw_string_literal"):
            yield Span(node.start_byte, node.end_byte)
        elif kind == "concatenated_string":
            for child in node.children:
                if child.type in LITERALS:
                    yield Span(child.start_byte, child.end_byte)
                elif child.type != "comment":
                    yield from self.of(child, depth)
        elif kind == "binary_expression" and self._text(part(node, "operator")) == "+":
            for side in ("left", "right"):
                yield from self._inner(part(node, side), node, depth)
        elif kind in ("parenthesized_expression", "argument_list", "initializer_list"):
            inside = children(node)
            yield from self._inner(inside[0] if len(inside) == 1 else None, node, depth)
        elif kind == "call_expression":
            yield from self._call(node, depth)
        elif kind in ("identifier", "qualified_identifier", "field_expression", "subscript_expression"):
            yield from self._constant(node, depth)
        else:
            raise Unclear(self._text(node))

    def unwrapped(self, node: Node) -> Node:
        """An expression out of what torch wraps texts in."""
        while node.type == "call_expression":
            inside = children(part(node, "arguments"))
            if self._text(part(node, "function")) not in WRAPPERS or not inside:
                break
            node = inside[0]
        return node

    def named(self, name: str) -> list[Span]:
        """The literals that a name stands for that this file defines once; none where it is no such name."""
        found = self.constants.defined(name.encode("latin-1"))
        try:
            if len(found) != 1:
                return []
            return list(self._macro(found[0], name) if isinstance(found[0], Span) else self.of(found[0]))
        except Unclear:
            return []

    def _goes_on(self, at: int) -> bool:
        """Does a literal or a name stand behind a text that ends here? The parser lost it, as it loses a macro."""
        gap = SPACE.match(self.source, at)
        at = gap.end() if gap else at
        return bool(LITERAL.match(self.source, at) or WORD.match(self.source, at))

    def adjacent(self, at: int) -> Iterator[Span]:
        """The literals that stand side by side from here to where the expression ends, macros of literals among them,
        of which the parser makes no expression. Raises Unclear."""
        while True:
            gap = SPACE.match(self.source, at)
            at = gap.end() if gap else at
            literal, name = LITERAL.match(self.source, at), WORD.match(self.source, at)
            found = self.constants.defined(name[0]) if name else []
            if self.source[at : at + 1] in ENDS:
                return
            if literal:
                yield Span(literal.start(), literal.end())
                at = literal.end()
            elif name and len(found) == 1 and isinstance(found[0], Span):
                yield from self._macro(found[0], name[0].decode("latin-1"))
                at = name.end()
            else:
                raise Unclear(name[0].decode("latin-1") if name else "more that follows")

    def _call(self, node: Node, depth: int) -> Iterator[Span]:
        """`std::string("…")`, `text.c_str()`"""
        function, given = part(node, "function"), part(node, "arguments")
        if self._text(part(function, "field")) in GIVERS and given and not given.named_children:
            yield from self._inner(part(function, "argument"), node, depth)
        elif STRINGS.fullmatch(self._text(function)):
            yield from self._inner(given, node, depth)
        else:
            raise Unclear(self._text(node))

    def _constant(self, node: Node, depth: int) -> Iterator[Span]:
        found = self.constants.meant(node)
        if found is None or depth > DEEPEST:
            raise Unclear(self._text(node))
        if isinstance(found, Span):
            yield from self._macro(found, self._text(node))
        else:
            yield from self.of(found, depth + 1)

    def _macro(self, body: Span, name: str) -> Iterator[Span]:
        """A macro whose body is literals and nothing else."""
        found = list(LITERAL.finditer(self.source, body.start, body.end))
        rest = LITERAL.sub(b"", self.source[body.start : body.end])
        if not found or rest.strip(b" \t\r\n\\()"):
            raise Unclear(name)
        for match in found:
            yield Span(match.start(), match.end())

    def _inner(self, node: Node | None, outer: Node, depth: int) -> Iterator[Span]:
        if node is None:
            raise Unclear(self._text(outer))
        yield from self.of(node, depth)

    def _text(self, node: Node | None) -> str:
        return text(node, self.source)
