"""Calls of `def` and `impl` on library objects that no block hands in: members, globals, behind pointers.

Knows how such objects are declared and made, and what is called on them; what the calls say is read elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.model import Span

from .syntax import is_a, part, text

SCHEMA_CALL = rb'def\s*\(\s*"(?:\w+::)?[\w.]+\('  # of whatever object: no other library's `def` is given a schema
_LIBRARY = re.compile(rb"\bLibrary(?:\s*(?:[&*>]|\w+\s*[({;=])|::(?:DEF|FRAGMENT|IMPL))")
_OBJECT = re.compile(rb"\bLibrary\b[\s*&>]*\b(\w+)\s*[;({=,)]|\b(\w+)\s*=[^;=]*\bLibrary\s*>?\s*[({]")
_CALL = re.compile(rb"(?:\.|->)\s*(def|impl)\s*\(")
_SCHEMA = re.compile(SCHEMA_CALL)


def may_be(source: bytes) -> bool:
    """A cheap look: could anything here be such an object? A plain word is found ten times as fast."""
    return (b"Library" in source and bool(_LIBRARY.search(source))) or (
        b"def" in source and bool(_SCHEMA.search(source))
    )


@dataclass(frozen=True, slots=True)
class ObjectCall:
    """One call: of which method, with what, on an object that was made for this namespace."""

    method: str
    arguments: Node
    namespace: str | None


def calls(source: bytes, root: Node, elsewhere: Sequence[Span]) -> Iterator[ObjectCall]:
    """The calls outside the spans that are read `elsewhere`, in file order."""
    objects = {(match[1] or match[2]).decode("latin-1") for match in _OBJECT.finditer(source)}
    for match in _CALL.finditer(source):
        at = match.start(1)
        if any(span.start <= at < span.end for span in elsewhere):
            continue
        method = root.descendant_for_byte_range(at, match.end(1))
        function = method.parent if method else None
        if not is_a(function, "field_expression") or not (arguments := part(function.parent, "arguments")):
            continue
        name = receiver(function, source)
        if _SCHEMA.match(source, at):
            objects.add(name)
        if name in objects:
            yield ObjectCall(match[1].decode(), arguments, _namespace(source, name))


def receiver(function: Node, source: bytes) -> str:
    """The name of the object at the start of `m.def(...).def(...)`; of `this->m` that of the member."""
    node = part(function, "argument")
    while is_a(node, "call_expression"):
        node = part(node, "function", "argument") or part(node, "function")
    return text(part(node, "field") or node, source)


def _namespace(source: bytes, name: str) -> str | None:
    """The namespace that an object was made with, where this file says so."""
    made = rb"\b" + re.escape(name.encode("latin-1")) + rb'\b[^;{}]{0,200}?\b(?:DEF|FRAGMENT|IMPL)\s*,\s*"(\w+)"'
    found = re.search(made, source)
    return found[1].decode() if found else None
