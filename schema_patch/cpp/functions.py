"""Which expression names the function that is registered, and whether it is a constant that does. Knows syntax only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

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
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        inside = [n for n in arguments.named_children if n.type != "comment"] if arguments else []
        if not function or _text(function, source) not in WRAPPERS or not inside:
            break
        node = inside[-1]
    return node


def kind(node: Node, source: bytes) -> str:
    """Whether the expression is a constant that names a "function", a "lambda", or something "other"."""
    text = _text(node, source)
    before = source[: node.start_byte].rstrip()[-1:]
    if before not in (b",", b"(") or "DispatchKey" in text:
        return "other"
    if node.type == "lambda_expression":
        return "other" if re.search(r"\)\s*mutable\b", text) else "lambda"
    if node.type == "call_expression":
        return "function" if text.startswith("static_cast") else "other"
    return "other" if node.type == "identifier" and _is_variable(text.encode("latin-1"), source) else "function"


def _is_variable(name: bytes, source: bytes) -> bool:
    """Whether a name is given a value, or declared as in `F* f;`: no template argument and, perhaps, no function."""
    for match in re.finditer(re.escape(name) + rb"(?<!\w" + re.escape(name) + rb")\s*(=(?!=)|;)", source):
        before = source[: match.start()]
        declared = before.rstrip(b"&* \t\r\n\f\v")
        if match[1] == b"=" or (declared != before and re.search(rb"\w\Z", declared[-1:])):
            return True
    return False


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("latin-1")
