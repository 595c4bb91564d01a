"""Edits that make a Python registration say what it writes: names in `mutates_args`, `(a!)` in a schema string. Pure.

A literal keeps its style: brackets, quotes, and a line an element. Knows Python literals and schemas; reads no file.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from schema_patch.model import Edit, Effect, Span
from schema_patch.schemas import annotate
from schema_patch.schemas.annotate import Returns
from schema_patch.schemas.grammar import Schema
from schema_patch.text.mapped import MappedText, Unreadable


def annotated(
    schema: Schema, text: MappedText, writes: Sequence[str], returns: str = "unknown", *, bare: bool
) -> tuple[Edit, ...]:
    """The edits after which the schema declares these writes, and the argument that is returned. Raises Unreadable."""
    if not text.spans:
        raise Unreadable("the schema is not written as plain string literals")
    planned = annotate.plan(schema, Effect(schema.op, tuple(writes), returns, ""), Returns.ALIAS, bare=bare)
    return tuple(edit for e in planned for edit in text.edits(e.start, e.end, e.new))


def named(data: bytes, where: Span | None, names: Sequence[str]) -> tuple[Edit, ...]:
    """The edits that add names to the list, tuple or set of strings at `where`. Raises Unreadable.

    An empty span is where another keyword begins, in a call that has no `mutates_args` yet.
    """
    if where is None:
        raise Unreadable("no mutates_args is written there")
    if where.start == where.end:
        listed = ", ".join(f'"{name}"' for name in names)
        line = data[data.rfind(b"\n", 0, where.start) + 1 : where.start]
        ending = "\r\n" if b"\r\n" in data else "\n"
        between = "," + ending + line.decode("latin-1") if not line.strip() else ", "
        return (Edit(where, f"mutates_args=[{listed}]{between}".encode()),)
    text = data[where.start : where.end]
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and node.elts:
        return (_behind(text, where.start, node.elts[-1], names),)
    listed = ", ".join(f'"{name}"' for name in names)
    listed += "," if isinstance(node, ast.Tuple) and len(names) == 1 else ""
    at = where.start + 1
    return (Edit(Span(at, at), listed.encode()),)


def _behind(text: bytes, start: int, last: ast.expr, names: Sequence[str]) -> Edit:
    """More elements behind the last one, as that one is written."""
    lines = text.splitlines(keepends=True)
    before = sum(map(len, lines[: last.lineno - 1]))
    quote = text[before + last.col_offset : before + last.col_offset + 1].decode("latin-1")
    quote = quote if quote in ("'", '"') else '"'
    indent = lines[last.lineno - 1][: last.col_offset].decode("latin-1")
    between = ", "
    if last.lineno > 1 and not indent.strip():
        between = "," + ("\r\n" if lines[0].endswith(b"\r\n") else "\n") + indent
    end_line = last.end_lineno or last.lineno
    at = start + sum(map(len, lines[: end_line - 1])) + (last.end_col_offset or 0)
    return Edit(Span(at, at), "".join(f"{between}{quote}{name}{quote}" for name in names).encode())
