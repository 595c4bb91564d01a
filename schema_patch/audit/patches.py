"""Schemas inside patch files: read and reported, not judged, because what they are applied to is not there.

Takes the lines that a patch adds or keeps; knows unified diffs and string literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from schema_patch.cpp.literals import read as read_literals
from schema_patch.model import Checked, Location, Span, Verdict
from schema_patch.schemas.grammar import SchemaError, parse
from schema_patch.text import files
from schema_patch.text.mapped import Unreadable

SUFFIXES = (".patch", ".diff")
DEFINITION = re.compile(rb'\.\s*def\s*\(\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+)')
LITERAL = re.compile(rb'"(?:[^"\\\n]|\\.)*"')


def read(paths: Iterable[str]) -> list[Checked]:
    """Every operator schema that a patch file at these paths adds or keeps."""
    return [row for root in paths for path in files.named(root, SUFFIXES) for row in schemas(path)]


def schemas(path: str) -> list[Checked]:
    """The schemas of one patch file, at the lines where they begin."""
    with open(path, "rb") as stream:
        lines = stream.read().split(b"\n")
    text = b"\n".join(line[1:] if line[:1] in (b"+", b" ") and line[:3] != b"+++" else b"" for line in lines)
    found = []
    for match in DEFINITION.finditer(text):
        spans = [Span(m.start(), m.end()) for m in LITERAL.finditer(text, match.start(1), match.end(1))]
        try:
            schema = parse(read_literals(text, spans).text)
        except (SchemaError, Unreadable):
            continue  # a doc string, or a name alone
        where = Location.at(path, text, spans[0].start)
        where = replace(where, column=where.column + 1)  # behind the sign of the line
        reason = "in a patch file: read, not judged; apply it and audit the result"
        found.append(Checked(schema.op, where, schema.text, Verdict.UNKNOWN, reason))
    return found
