"""C++ bytes -> a syntax tree, and the nodes of some kinds in it. Knows tree-sitter, nothing of what is looked for."""

from __future__ import annotations

from functools import cache

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
