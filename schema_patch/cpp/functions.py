"""Which expression names the function that is registered, and whether it is a constant that does. Knows syntax only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from .syntax import children, part, text

# Wrappers around an implementation.
WRAPPERS = frozenset({"TORCH_FN", "torch::dispatch", "c10::dispatch", "dispatch", "torch::CppFunction"})
ELEMENTS = frozenset({"field_expression", "subscript_expression"})  # of tables
NODES = ELEMENTS | {
    "identifier", "qualified_identifier", "pointer_expression", "template_function", "lambda_expression",
    "call_expression", "cast_expression", "parenthesized_expression",
}  # fmt: skip


def named(items: Sequence[Node], source: bytes) -> Node | None:
    """The expression that names the implementation: the last argument, out of its wrappers."""
    if not items or items[-1].type not in NODES:
        return None
    node = items[-1]
    while node.type == "call_expression":
        inside = children(part(node, "arguments"))
        if text(part(node, "function"), source) not in WRAPPERS or not inside:
            break
        node = inside[-1]
    return node


def kind(node: Node, source: bytes) -> str:
    """Whether the expression is a constant that names a "function", a "lambda", or something "other"."""
    written = text(node, source)
    before = source[: node.start_byte].rstrip()[-1:]
    if before not in (b",", b"(") or "DispatchKey" in written:
        return "other"
    if node.type == "lambda_expression":
        return "other" if re.search(r"\)\s*mutable\b", written) else "lambda"
    if node.type == "call_expression":
        return "function" if written.startswith("static_cast") else "other"
    return "other" if node.type == "identifier" and _is_variable(written.encode("latin-1"), source) else "function"


def _is_variable(name: bytes, source: bytes) -> bool:
    """Whether a name is given a value, or declared as in `F* f;`: no template argument and, perhaps, no function."""
    for match in re.finditer(re.escape(name) + rb"(?<!\w" + re.escape(name) + rb")\s*(=(?!=)|;)", source):
        before = source[: match.start()]
        declared = before.rstrip(b"&* \t\r\n\f\v")
        if match[1] == b"=" or (declared != before and re.search(rb"\w\Z", declared[-1:])):
            return True
    return False
