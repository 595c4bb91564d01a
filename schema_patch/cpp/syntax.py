"""C++ bytes -> a syntax tree, and ways through it. Knows tree-sitter, nothing of what is looked for."""

from __future__ import annotations

from functools import cache
from typing import TypeGuard

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Query, QueryCursor


@cache
def _language() -> Language:
    return Language(tree_sitter_cpp.language())


@cache
def _parser() -> Parser:
    return Parser(_language())


@cache
def _query(kinds: tuple[str, ...]) -> Query:
    made: Query = Query(_language(), f"[{' '.join(f'({kind})' for kind in kinds)}] @found")
    return made


def parse(source: bytes) -> Node:
    """The root of the tree of a text; what does not parse is an ERROR within it."""
    return _parser().parse(source).root_node


def nodes(within: Node, *kinds: str) -> list[Node]:
    """All nodes of these kinds, as they stand in the file, outer before inner."""
    found = QueryCursor(_query(kinds)).captures(within).get("found", [])
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


def text(node: Node | None, source: bytes) -> str:
    """A node as it stands in the source, a character for each byte; nothing of none."""
    return source[node.start_byte : node.end_byte].decode("latin-1") if node else ""


def is_a(node: Node | None, *kinds: str) -> TypeGuard[Node]:
    """Whether there is a node, and of one of these kinds."""
    return node is not None and node.type in kinds


def part(node: Node | None, field: str, *further: str) -> Node | None:
    """What stands in a field of a node, in a field of that, and so on; None where there is none."""
    found = node.child_by_field_name(field) if node else None
    return part(found, *further) if further else found


def children(node: Node | None) -> list[Node]:
    """The named children of a node, without comments."""
    return [child for child in node.named_children if child.type != "comment"] if node else []


def first(node: Node | None) -> Node | None:
    """The first of them."""
    return next(iter(children(node)), None)
