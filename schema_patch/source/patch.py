"""Source files -> what their registrations are worth, and the bytes that make them right. Reads and writes nothing.

`examine` judges; `annotate_all` and `strip_all` plan new bytes for each file and read them again before they are
believed, because a schema that does not parse ends the process that loads it (std::terminate at dlopen).

What can be wrong before a schema is judged (rules.py has the codes of judgement):
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources

from schema_patch.cpp import registrations, shared, strays
from schema_patch.cpp.registered import NOWHERE, Elsewhere, Implementation, Problem, Registration, Source
from schema_patch.model import Checked, Edit, Effect, Finding, Location, Report, Severity, Span, ToolError, Verdict
from schema_patch.schemas import annotate, grammar, rules
from schema_patch.schemas.annotate import Returns, TextEdit
from schema_patch.schemas.gone import VoidedOperator
from schema_patch.schemas.grammar import Schema, SchemaError
from schema_patch.schemas.rules import Judgement
from schema_patch.schemas.selection import ALL, Selection
from schema_patch.schemas.table import Table
from schema_patch.text import edits
from schema_patch.text.files import SourceFile

from .plans import Change, FilePlan, TreePlan

GUARD = "SCHEMA_PATCH_DROP_RETURN"


@dataclass(frozen=True, slots=True)
class JudgedOperator:
    """One registration whose schema parses, with what the table knows of it."""

    registration: Registration
    schema: Schema
    effect: Effect | None
    judgement: Judgement

    @property
    def key(self) -> tuple[str | None, str]:
        return self.schema.namespace or self.registration.namespace, self.schema.op


@dataclass(frozen=True, slots=True)
class Unit:
    """One file as read, with its operators."""

    file: SourceFile
    source: Source
    operators: tuple[JudgedOperator, ...]
    findings: tuple[Finding, ...]
    errors: tuple[ToolError, ...]
    elsewhere: Elsewhere = NOWHERE
    unread: tuple[Checked, ...] = ()  # operators that are registered without a schema, and that no table knows


@dataclass
class SourcePlan(TreePlan):
    """`after`: what the C++ files hold then."""

    after: list[Unit] = field(default_factory=list)


def examine_all(files: Iterable[SourceFile], table: Table) -> list[Unit]:
    """The files of one tree: what they register, with constants that stand in others of them."""
    units = {file.path: examine(file, table) for file in files}
    sources = {path: unit.source for path, unit in units.items()}
    for path, elsewhere in shared.find(sources, units, lambda path: units[path].file.data).items():
        units[path] = examine(units[path].file, table, elsewhere)
    return list(units.values())


def examine(file: SourceFile, table: Table, elsewhere: Elsewhere = NOWHERE) -> Unit:
    """Reads one file's registrations and judges each."""
    texts = strays.find(file.data, table.entries)
    if not texts and not registrations.may_register(file.data) and elsewhere is NOWHERE:
        return Unit(file, Source(), (), (), ())
    source = registrations.read(file.data, file.path, elsewhere)
    operators: list[JudgedOperator] = []
    findings: list[Finding] = []
    unread: list[Checked] = []
    for registration in source.registrations:
        parsed = parsed_of(registration.schema.text, registration.location)
        if isinstance(parsed, Finding):
            findings.append(parsed)
            continue
        operators.append(JudgedOperator(registration, parsed, *judge(parsed, registration.namespace, table)))
    for unwritten in source.unwritten:
        text = table.schema_of(file.path, unwritten.op, unwritten.function)
        if text:
            registration = unwritten.registration(text)
            parsed = grammar.parse(registration.schema.text)
            operators.append(JudgedOperator(registration, parsed, *judge(parsed, unwritten.namespace, table)))
        elif unwritten.op in table.entries:
            findings.append(_inferred(unwritten.op, unwritten.location))
        else:
            unread.append(Checked(unwritten.op, unwritten.location, "", Verdict.UNKNOWN, rules.NOT_IN_TABLE))
    operators.sort(key=lambda o: (o.registration.location.line, o.registration.location.column))
    errors = [ToolError(p.message, p.location) for p in source.problems if p.fatal]
    told = (unmapped(problem, table) for problem in source.problems if not problem.fatal)
    findings += [finding for finding in told if finding]
    read = {span.start for registration in source.registrations for span in registration.schema.spans}
    known = {finding.location for finding in findings if finding.severity is Severity.ERROR}
    for at, op in strays.left_over(texts, read, source.inert):
        where = Location.at(file.path, file.data, at)
        if not any(place.line == where.line for place in known):
            message = "a schema of this operator stands here, but no registration that can be read: edit it by hand"
            findings.append(Finding("SP002", where, op, message))
    return Unit(file, source, tuple(operators), tuple(findings), tuple(errors), elsewhere, tuple(unread))


def report(
    units: Iterable[Unit],
    ops: Selection = ALL,
    errors: Iterable[ToolError] = (),
    python: Iterable[Finding] = (),
    registered: Iterable[Checked] = (),
) -> Report:
    """The verdicts on every operator (or those of `ops`) of these files.

    `python`: what was found in Python; `registered`: the operators that Python registers, judged.
    """
    checked: list[Checked] = list(registered)
    findings: list[Finding] = []
    failed = list(errors)
    seen: list[tuple[str | None, str]] = [(None, row.op) for row in checked]
    for unit in units:
        failed.extend(unit.errors)
        findings.extend(f for f in unit.findings if ops.takes(f.op))
        checked += [row for row in unit.unread if ops.takes(row.op)]
        seen += [(None, row.op) for row in unit.unread]
        for operator in unit.operators:
            op, judgement = operator.schema.op, operator.judgement
            if not ops.takes(op, operator.key[0]):
                continue
            seen.append((operator.key[0], op))
            where = operator.registration.location
            checked.append(Checked(op, where, operator.schema.text, judgement.verdict, judgement.reason))
            if judgement.code:
                edit = (
                    _byte_edits(operator, annotate.plan(operator.schema, operator.effect, Returns.ALIAS))
                    if operator.effect
                    else ()
                )
                findings.append(Finding(judgement.code, where, op, judgement.reason, judgement.severity, tuple(edit)))
    seen += [(None, finding.op) for finding in findings]
    failed += [ToolError(f"{name}: asked for, but not registered in these files") for name in ops.missing(seen)]
    return Report(tuple(checked), (*findings, *python), tuple(failed))


def annotate_all(units: Sequence[Unit], table: Table, returns: Returns, ops: Selection = ALL) -> SourcePlan:
    """Plans the annotation of every operator that the table knows (or of those in `ops`)."""
    plan = SourcePlan()
    habits = {unit.file.path: annotate.habit([o.schema for o in unit.operators]) for unit in units}

    def edits_for(unit: Unit, operator: JudgedOperator) -> tuple[TextEdit, ...]:
        if operator.effect is None:
            return ()
        return annotate.plan(operator.schema, operator.effect, returns, bare=habits[unit.file.path])

    wanted = _wanted(units, ops, edits_for)
    voided = {o.key for _, o, edit in wanted if o.schema.returns and any(e.new == "()" for e in edit)}
    wraps, refused = _wraps(units, voided)
    plan.errors += refused.values()
    wanted = [(unit, operator, edit) for unit, operator, edit in wanted if operator.key not in refused]
    _finish(plan, units, wanted, wraps, table)
    return plan


def strip_all(units: Sequence[Unit], table: Table, ops: Selection = ALL) -> SourcePlan:
    """Plans the removal of the write annotations of every operator that the table knows."""
    plan = SourcePlan()

    def edits_for(_: Unit, operator: JudgedOperator) -> tuple[TextEdit, ...]:
        return annotate.strip(operator.schema) if operator.effect else ()

    _finish(plan, units, _wanted(units, ops, edits_for), {}, table)
    return plan


Wanted = list[tuple[Unit, JudgedOperator, tuple[TextEdit, ...]]]


def _wanted(
    units: Sequence[Unit], ops: Selection, make: Callable[[Unit, JudgedOperator], tuple[TextEdit, ...]]
) -> Wanted:
    found: Wanted = []
    for unit in units:
        for operator in unit.operators:
            edit = make(unit, operator) if ops.takes(operator.schema.op, operator.key[0]) else ()
            if edit:
                found.append((unit, operator, edit))
    return found


def _wraps(
    units: Sequence[Unit], voided: set[tuple[str | None, str]]
) -> tuple[dict[str, list[Implementation]], dict[tuple[str | None, str], ToolError]]:
    """The implementations to wrap, by file, for the operators that lose their return; and which cannot be."""
    bound: dict[tuple[str | None, str], list[tuple[str, Implementation]]] = defaultdict(list)
    for unit in units:
        for implementation in unit.source.implementations:
            for key in voided:
                same = implementation.namespace in (None, key[0]) or key[0] is None
                if implementation.op in (key[1], "") and same:
                    bound[key].append((unit.file.path, implementation))
    wraps: dict[str, list[Implementation]] = defaultdict(list)
    refused: dict[tuple[str | None, str], ToolError] = {}
    for key in sorted(voided, key=str):
        op, found = key[1], bound[key]
        unknown = next((i for _, i in found if i.kind == "other"), None)
        if not found:
            where = next(o.registration.location for u in units for o in u.operators if o.key == key)
            refused[key] = ToolError(
                f"{op}: cannot drop its return: no m.impl of it in these files; left as it is", where
            )
        elif unknown:
            text = unknown.text if len(unknown.text) < 60 else unknown.text[:57] + "..."
            refused[key] = ToolError(f"{op}: cannot drop the return of `{text}`; left as it is", unknown.location)
        else:
            for path, implementation in found:
                if implementation not in wraps[path]:
                    wraps[path].append(implementation)
    return wraps, refused


def _finish(
    plan: SourcePlan, units: Sequence[Unit], wanted: Wanted, wraps: dict[str, list[Implementation]], table: Table
) -> None:
    """Puts the edits of each file together, and believes them only after reading the result."""
    for unit in units:
        path = unit.file.path
        rows = [row for row in wanted if row[0] is unit]
        made = [edit for _, operator, text_edits in rows for edit in _byte_edits(operator, text_edits)]
        made += _wrap_edits(unit, wraps.get(path, ()))
        made = list(dict.fromkeys(made))  # two schemas may be made of one constant
        plan.after.append(unit)
        if not made:
            continue
        new = edits.apply(unit.file.data, made)
        after = examine(SourceFile(path, unit.file.real, new), table, unit.elsewhere)
        try:
            changes = _proved(unit, after, rows)
        except ToolError as error:
            plan.errors.append(error)
            continue
        plan.files.append(FilePlan(unit.file, new, tuple(made), changes))
        plan.after[-1] = after


def gone(after: Sequence[Unit], ops: Selection = ALL, before: Sequence[Unit] = ()) -> list[VoidedOperator]:
    """The operators that hand an argument back, all of whose schemas say `-> ()`: their results may not be used.

    `before`: the files as they were, where an operator may have returned more than the one argument.
    """
    more = {o.key for unit in before for o in unit.operators if len(o.schema.returns) > 1}
    returning = {o.key for unit in after for o in unit.operators if o.schema.returns}
    found: dict[tuple[str | None, str], VoidedOperator] = {}
    for operator in (o for unit in after for o in unit.operators):
        buffer = operator.effect.returned_argument if operator.effect else None
        namespace, name = operator.key  # an unknown namespace may be any
        returns = any(op == name and (space == namespace or None in (space, namespace)) for space, op in returning)
        if buffer and not returns and ops.takes(name, namespace):
            arguments = tuple(arg.name for arg in operator.schema.args)
            told = None if operator.key in more else buffer
            found[operator.key] = VoidedOperator(*operator.key, arguments, told, operator.schema.overload)
    return list(found.values())


def _proved(before: Unit, after: Unit, rows: Wanted) -> tuple[Change, ...]:
    """The changes, if the new bytes hold the schemas that were meant and otherwise what was there."""
    expected = {id(o): annotate.apply(o.schema.text, edit) for _, o, edit in rows}
    meant = [expected.get(id(o), o.schema.text) for o in before.operators]
    if [o.schema.text for o in after.operators] != meant or len(after.findings) > len(before.findings):
        raise ToolError(
            "the edits would not give the schemas that were meant: nothing written; please report this file",
            before.file.path,
        )
    return tuple(
        Change(old.schema.op, old.registration.location, old.schema.text, new.schema.text, new.judgement)
        for old, new in zip(before.operators, after.operators, strict=True)
        if id(old) in expected
    )


def _byte_edits(operator: JudgedOperator, text_edits: Iterable[TextEdit]) -> list[Edit]:
    text = operator.registration.schema
    if operator.registration.named_only:
        end = len(text.spans)
        return text.edits(end, end, annotate.apply(text.text, text_edits)[end:]) if text_edits else []
    return [edit for e in text_edits for edit in text.edits(e.start, e.end, e.new)]


def _wrap_edits(unit: Unit, implementations: Collection[Implementation]) -> list[Edit]:
    made: list[Edit] = []
    for implementation in implementations:
        start, end = implementation.span.start, implementation.span.end
        opening, closing = (b"drop_return_of(", b")") if implementation.kind == "lambda" else (b"drop_return<", b">")
        made += [Edit(Span(start, start), opening), Edit(Span(end, end), closing)]
    if made and GUARD.encode() not in unit.file.data:
        newline = "\r\n" if b"\r\n" in unit.file.data else "\n"
        text = (resources.files(__package__) / "drop_return.h").read_text("ascii")
        block = f"\n#ifndef {GUARD}\n#define {GUARD}\n{text}#endif\n".replace("\n", newline)
        at = unit.source.prologue_end
        made.append(Edit(Span(at, at), block.encode("ascii")))
    return made


def judge(parsed: Schema, namespace: str | None, table: Table) -> tuple[Effect | None, Judgement]:
    """What the table knows of an operator, and what its schema is worth by that."""
    effect = table.effect(parsed, namespace)
    if effect is None and table.entry(parsed.op):
        reason = "not judged: the table's operator of this name has other arguments or another namespace"
        return None, Judgement(Verdict.UNKNOWN, "SP003", reason)
    return effect, rules.judge(parsed, effect)


def parsed_of(text: str, where: Location) -> Schema | Finding:
    """The schema of a registration, or that torch would not parse it."""
    try:
        return grammar.parse(text)
    except SchemaError as error:
        op = text.split("(", 1)[0].strip()
        if "{{" in text or "{%" in text:
            return Finding("SP002", where, op, registrations.TEMPLATE, Severity.WARNING)
        return Finding("SP001", where, op, f"torch will not parse this schema: {error}")


def _inferred(op: str, where: Location) -> Finding:
    return Finding("SP004", where, op.rpartition("::")[2], "no schema: torch infers one that declares no write")


def unmapped(problem: Problem, table: Table) -> Finding | None:
    """A registration that cannot be read is an error where it may be one that the table knows."""
    known = next((name for name in table.entries if re.search(rf"(?<!\w){name}(?!\w)", problem.text)), "")
    if problem.hint and not known:
        return None
    return Finding("SP002", problem.location, known, problem.message, Severity.ERROR if known else Severity.WARNING)
