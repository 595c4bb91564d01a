"""Source trees on disk: reads them for patch.py and for wrap.py of `python`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from schema_patch.model import Checked, Finding, Report, Severity, ToolError
from schema_patch.python import calls, wrap
from schema_patch.python import tree as pytree
from schema_patch.python.calls import Outside
from schema_patch.python.handles import Handles
from schema_patch.python.registrations import schema_of
from schema_patch.python.tree import Python
from schema_patch.schemas import rules
from schema_patch.schemas.gone import Gone
from schema_patch.schemas.selection import ALL, Selection, namespace_of
from schema_patch.schemas.table import Table
from schema_patch.text import files
from schema_patch.text.files import Progress

from . import patch
from .patch import Unit
from .plans import FilePlan, TreePlan


def read(paths: Iterable[str], table: Table, progress: Progress = lambda _: None) -> tuple[list[Unit], list[ToolError]]:
    """Every C++ file at these paths, examined, and what could not be read. A file with two names is read once."""
    errors: list[ToolError] = []
    return patch.examine_all(files.texts(paths, errors, progress), table), errors


def read_python(
    paths: Iterable[str], gone: Gone, progress: Progress = lambda _: None
) -> tuple[list[Finding], list[ToolError]]:
    """What Python code at these paths makes of operators that return nothing any more. Without any, reads nothing."""
    findings: list[Finding] = []
    errors: list[ToolError] = []
    seen: set[Path] = set()
    for root in paths if gone else ():
        found, outside = _python(root, gone, errors, progress)
        new = [file for file in found if file.real not in seen]
        seen |= {file.real for file in new}
        findings += _judge_python(new, outside, gone, errors)
    return findings, errors


def registered_in_python(
    paths: Iterable[str], table: Table, ops: Selection, progress: Progress = lambda _: None
) -> tuple[list[Checked], list[Finding], list[ToolError]]:
    """The operators that Python registers, by what the table says of their schemas; and what could not be read."""
    python = pytree.gather(paths, progress)
    return *_registered(python, table, ops), python.errors


def _registered(python: Python, table: Table, ops: Selection) -> tuple[list[Checked], list[Finding]]:
    checked: list[Checked] = []
    bad = (patch.parsed_of(o.said, o.location) for o in python.unparsed if ops.takes(o.op, namespace_of(o.name)))
    findings = [finding for finding in bad if isinstance(finding, Finding)]
    pairs = ((operator, source) for source in python.sources for operator in source.operators)
    for operator, source in pairs:
        function = source.decorated.get(operator.location) or source.functions.get(operator.function)
        schema, namespace = schema_of(operator, function), namespace_of(operator.name)
        if not ops.takes(operator.op, namespace):
            continue
        judgement = patch.judge(schema, namespace, table)[1] if schema else rules.NOT_KNOWN
        checked.append(Checked(operator.op, operator.location, operator.said, judgement.verdict, judgement.reason))
        if judgement.code:
            by_infer = not operator.schema and judgement.severity is Severity.ERROR
            reason = f"{judgement.reason}{' (apply --infer writes mutates_args)' if by_infer else ''}"
            findings.append(Finding(judgement.code, operator.location, operator.op, reason, judgement.severity))
    return checked, findings


def plan_python(root: str, gone: Gone, progress: Progress = lambda _: None) -> TreePlan:
    """New bytes for the Python files at a path that use results which are gone."""
    plan = TreePlan()
    if not gone:
        return plan
    found, outside = _python(root, gone, plan.errors, progress)
    for file in found:
        try:
            new, made, findings = wrap.rewrite(file.data, file.path, gone, outside)
        except ToolError as error:
            plan.errors.append(error)
            continue
        plan.left += [finding for finding in findings if not finding.fixable]
        if made:
            plan.files.append(FilePlan(file, new, made, (), tuple(f for f in findings if f.fixable)))
    return plan


def judge(sources: Mapping[str, bytes], table: Table) -> Report:
    """The verdicts on files that are in memory, by path: what `check` says of a tree that holds them."""
    cpp: list[files.SourceFile] = []
    python: list[files.SourceFile] = []
    errors: list[ToolError] = []
    for path, data in sorted(sources.items()):
        kind, what = (python, "Python") if files.has_suffix(path, files.PYTHON) else (cpp, "C++ source")
        try:
            kind.append(files.given(path, Path(path), data, what))
        except ToolError as error:
            errors.append(error)
    units = patch.examine_all(cpp, table)
    gone = patch.gone(units)
    findings = _judge_python(*_concerned(python, gone), gone, errors) if gone else []
    registering = Python()
    for file in python:
        registering.add(file.path, file.data)
    registered, wrong = _registered(registering, table, ALL)
    return patch.report(units, errors=errors, python=[*findings, *wrong], registered=registered)


def _judge_python(
    found: Iterable[files.SourceFile], outside: Outside, gone: Gone, errors: list[ToolError]
) -> list[Finding]:
    findings: list[Finding] = []
    for file in found:
        try:
            findings += wrap.judge(file.data, file.path, gone, outside)
        except ToolError as error:
            errors.append(error)
    return findings


def _python(
    root: str, gone: Gone, errors: list[ToolError], progress: Progress
) -> tuple[list[files.SourceFile], Outside]:
    """The Python files at a path that may have to do with these operators, each once, and what their imports give."""
    return _concerned(list(files.texts([root], errors, progress, files.PYTHON)), gone)


def _concerned(found: Sequence[files.SourceFile], gone: Gone) -> tuple[list[files.SourceFile], Outside]:
    handles = Handles({file.path: file.data for file in found})
    others = handles.other_names(gone)
    return [file for file in found if calls.may_matter(file.data, gone, others)], handles.paths
