"""The Python side of an audit: operators registered in Python, and the fakes of all operators. Judges; prints nothing.

Reads files; flow is in pyflow.py. An operator whose mutates_args is computed at run time is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from . import files, pyflow, pyregs
from .model import Checked, Edit, Finding, Location, Severity, Verdict
from .mutation.infer import Answer, Kind
from .mutation.operators import Operator
from .pyregs import Fake, PyOperator, PySource
from .schema import Schema, SchemaError, parse

Writes = Mapping[str, tuple[int, ...]]


@dataclass
class Python:
    """Every Python file of a run that registers something; `files` counts all that were looked at."""

    sources: list[PySource] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)
    files: int = 0


def gather(paths: Iterable[str], step: Callable[[str], None]) -> Python:
    """The Python files at these paths."""
    found = Python()
    for root in paths:
        for path in _find(root):
            with open(path, "rb") as stream:
                data = stream.read()
            found.files += 1
            step(path)
            source = pyregs.read(data, path) if pyregs.may_register(data) else None
            if source and (source.operators or source.fakes or source.implemented):
                found.sources.append(source)
                found.data[path] = data
    return found


def _find(root: str) -> Iterator[str]:
    if not os.path.isdir(root):
        if root.endswith(".py"):
            yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - files.SKIPPED)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".py") and os.path.isfile(path):
                yield path


def judge(python: Python, known: Writes) -> tuple[list[Checked], list[Finding]]:
    """The verdict on every operator that Python registers."""
    checked: list[Checked] = []
    findings: list[Finding] = []
    implemented = {op: (source, name) for source in python.sources for op, name in source.implemented.items()}
    for source in python.sources:
        for operator in source.operators:
            home, name = source, operator.function
            if not name and operator.name in implemented:
                home, name = implemented[operator.name]
            function = home.functions.get(name)
            schema, declared = _declared(operator)
            if function is None or declared is None:
                why = (
                    "mutates_args is not written as a constant"
                    if declared is None
                    else "its function is not in this file"
                )
                checked.append(Checked(_short(operator), operator.location, _text(operator), Verdict.UNKNOWN, why))
                continue
            answers = pyflow.answers(function, home.path, home.functions, known)
            row, found = _judged(operator, schema, declared, answers)
            checked.append(row)
            findings += found
    return checked, findings


def _declared(operator: PyOperator) -> tuple[Schema | None, tuple[str, ...] | None]:
    if operator.schema is None:
        return None, operator.mutates
    try:
        schema = parse(operator.schema.text)
    except SchemaError:
        return None, None
    return schema, schema.writes


def _short(operator: PyOperator) -> str:
    return operator.name.rpartition("::")[2]


def _text(operator: PyOperator) -> str:
    return operator.schema.text if operator.schema else f"{operator.name} (mutates_args={list(operator.mutates or ())})"


def _judged(
    operator: PyOperator, schema: Schema | None, declared: tuple[str, ...], answers: Mapping[str, Answer]
) -> tuple[Checked, list[Finding]]:
    if schema is not None:  # by position: a function may call its parameters otherwise
        renamed = zip((arg.name for arg in schema.args), answers.values(), strict=False)
        answers = dict(renamed)
    missing = [name for name, answer in answers.items() if answer.kind is Kind.WRITTEN and name not in declared]
    op = _short(operator)
    if missing:
        code = "SP102" if declared else "SP101"
        listed = ", ".join(f"'{name}'" for name in missing)
        chains = "; ".join(f"'{n}' at {answers[n].chain[0][0]}:{answers[n].chain[0][1]}" for n in missing)
        reason = f"writes {listed} undeclared" + (
            f"; only {', '.join(map(repr, declared))} declared" if declared else ""
        )
        edits = _edits(operator, (*declared, *missing))
        row = Checked(op, operator.location, _text(operator), Verdict.WRONG, reason)
        return row, [Finding(code, operator.location, op, f"{reason}: {chains}", Severity.ERROR, edits)]
    unknown = [(name, a) for name, a in answers.items() if a.kind is Kind.UNKNOWN and name not in declared]
    if unknown:
        reason = f"'{unknown[0][0]}': {unknown[0][1].reason}"
        return Checked(op, operator.location, _text(operator), Verdict.UNKNOWN, reason), []
    return Checked(op, operator.location, _text(operator), Verdict.RIGHT, "declares what is seen to be written"), []


def _edits(operator: PyOperator, names: tuple[str, ...]) -> tuple[Edit, ...]:
    if operator.mutates_span is None:
        return ()
    listed = ", ".join(f'"{name}"' for name in names)
    return (Edit(operator.mutates_span, f"[{listed}]".encode()),)


def fakes(python: Python, operators: Iterable[Operator]) -> list[Finding]:
    """Operators of C++ without a fake, and fakes that take something else than their schema says."""
    by_name: dict[str, list[Fake]] = {}
    for source in python.sources:
        for fake in source.fakes:
            name = fake.name.partition(".")[0]
            for key in {name, name.rpartition("::")[2]}:
                by_name.setdefault(key, []).append(fake)
    found: list[Finding] = []
    for operator in operators:
        name = operator.schema.name.rpartition("::")[2]
        full = f"{operator.namespace}::{name}"
        mine = by_name.get(full) or ([] if operator.namespace else by_name.get(name, []))
        composite = any("Composite" in i.key for i in operator.implementations)
        if not mine and not operator.fakes and not composite and python.files:
            message = "no fake: torch.compile cannot trace a call of it (torch.library.register_fake)"
            found.append(Finding("SP107", operator.location, operator.op, message, Severity.WARNING))
        for fake in mine:
            found += _compare(operator, fake)
    return found


def _compare(operator: Operator, fake: Fake) -> list[Finding]:
    """A fake with other parameters fails when it is called; one with other defaults answers for another call."""
    schema = operator.schema
    if fake.parameters is None or any(name == "*" for name, _ in fake.parameters) or operator.schema.overload:
        return []
    needed = sum(default is None for _, default in fake.parameters)
    where, op = fake.location, operator.op
    if not needed <= len(schema.args) <= len(fake.parameters):
        takes = f"{needed} to {len(fake.parameters)}" if needed < len(fake.parameters) else str(needed)
        message = f"the fake takes {takes} arguments, the schema at {operator.location} has {len(schema.args)}"
        return [Finding("SP108", where, op, message)]
    found = []
    for arg, (name, default) in zip(schema.args, fake.parameters, strict=False):
        if arg.name == name and arg.default is not None and default is not None and not _same(arg.default, default):
            message = f"'{name}' is {default} by default in the fake, {arg.default} in the schema"
            found.append(
                Finding("SP108", Location(where.path, where.line, where.column), op, message, Severity.WARNING)
            )
    return found


def _same(first: str, second: str) -> bool:
    """Whether two defaults are one value, as far as their spelling tells."""
    plain = [text.strip().strip("\"'").replace(" ", "") for text in (first, second)]
    try:
        return float(plain[0]) == float(plain[1])
    except ValueError:
        names = {"True": "1", "False": "0", "true": "1", "false": "0"}
        return names.get(plain[0], plain[0]).lower() == names.get(plain[1], plain[1]).lower() or "." in plain[1]
