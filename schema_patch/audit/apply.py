"""New bytes for Python files whose registrations do not declare what they write; read again before they are believed.

Reads files; writes none. What is wrong is in audit_python.py, the edits are in pyedits.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from schema_patch.model import ToolError, Verdict
from schema_patch.python import registrations, tree
from schema_patch.schemas.rules import Judgement
from schema_patch.schemas.selection import ALL, Selection, namespace_of
from schema_patch.source.plans import Change, FilePlan, TreePlan
from schema_patch.text import edits, files

from . import python as audit_python
from .python import CppFacts, PyRow


def rows_of(python: tree.Python, known: CppFacts, ops: Selection) -> list[PyRow]:
    """The operators that Python files register, or those of `ops`, judged as the files stand."""
    rows = audit_python.judge(python, known)
    return [row for row in rows if ops.takes(row.checked.op, namespace_of(row.operator.name))]


def plan(root: str, known: CppFacts, ops: Selection = ALL) -> TreePlan:
    """The plan for the Python files at a path, for all operators or those of `ops`."""
    made = TreePlan()
    python = tree.gather([root], lambda _: None)
    rows = rows_of(python, known, ops)
    made.left = [row.finding for row in rows if row.finding and not row.finding.fixable]
    inside = os.path.realpath(root)
    done: set[str] = set()
    for source in python.sources:
        mine = [row for row in rows if row.operator in source.operators and row.finding and row.finding.fixable]
        real = os.path.realpath(source.path)
        if not mine or real in done:
            continue
        done.add(real)
        try:
            if os.path.isdir(root) and not real.startswith(inside.rstrip(os.sep) + os.sep):
                raise ToolError("the symbolic link leads out of the tree: name its file to change it", source.path)
            made.files.append(_file_plan(files.read(source.path, "Python"), source, mine))
        except ToolError as error:
            made.errors.append(error)
    return made


def _file_plan(file: files.SourceFile, before: registrations.PySource, rows: Iterable[PyRow]) -> FilePlan:
    """The edits of one file put together. Raises ToolError where the result does not say what was meant."""
    by_operator = {row.operator: row for row in rows}
    findings = [row.finding for row in by_operator.values() if row.finding]
    made = tuple(edit for finding in findings for edit in finding.edits)
    try:
        new = edits.apply(file.data, made)
    except ValueError as error:
        raise ToolError(f"two registrations share the same bytes: nothing written ({error})", file.path) from error
    after = registrations.read(new, file.path)
    operators = after.operators if after else []
    pairs = list(zip(before.operators, operators, strict=False))
    if len(operators) != len(before.operators) or not all(_meant(old, now, by_operator) for old, now in pairs):
        raise ToolError("the edits would not declare what was meant: nothing written; put it right by hand", file.path)
    changes = tuple(
        Change(row.checked.op, old.location, old.said, now.said, _right(row))
        for old, now in pairs
        if (row := by_operator.get(old))
    )
    return FilePlan(file, new, made, changes)


def _meant(
    old: registrations.PyOperator, now: registrations.PyOperator, rows: dict[registrations.PyOperator, PyRow]
) -> bool:
    """Whether an operator is as it was but for what its finding says."""
    same = (old.name, old.function, old.kind) == (now.name, now.function, now.kind)
    row = rows.get(old)
    if row is None:
        return same and old.said == now.said
    return same and set(now.declares or ()) == set(row.declares)


def _right(row: PyRow) -> Judgement:
    return Judgement(Verdict.RIGHT, reason=f"declares {', '.join(map(repr, row.declares))}")
