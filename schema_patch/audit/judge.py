"""Operators whose schema does not say what their C++ does: what was inferred, judged. Reads trees through mutation/.

The kinds of lies are those of rules.py, told of operators that no table knows. An argument of which nothing could be
proved is taken to be as declared: unknown is never a defect. Codes of its own:
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from schema_patch.inference import work
from schema_patch.inference.index import tree
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.store import Store
from schema_patch.inference.native import NativeFunctions
from schema_patch.inference.operators import ImplementedOperator
from schema_patch.inference.scripts import Scripts
from schema_patch.model import Checked, Effect, Finding, Report, Severity, ToolError, Verdict
from schema_patch.python import tree as pytree
from schema_patch.report.text import one_line
from schema_patch.schemas import annotate, rules, table
from schema_patch.schemas.annotate import Returns
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.inferred import Answer, Inferred, Kind
from schema_patch.schemas.rules import Judgement
from schema_patch.schemas.types import Arg
from schema_patch.source import patch
from schema_patch.text import files
from schema_patch.text.collector import without_collector

from . import patches
from . import python as audit_python
from .python import CppFacts


@dataclass(frozen=True, slots=True)
class AuditedOperator:
    """One operator, what was inferred of it, and what its schema is worth."""

    operator: ImplementedOperator
    inferred: Inferred
    effect: Effect
    judgement: Judgement


@dataclass
class Audit:
    """Everything one run found."""

    rows: list[AuditedOperator] = field(default_factory=list)
    python: list[audit_python.PyRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    cpp: CppFacts = field(default_factory=CppFacts)  # what Python has to do with
    errors: list[ToolError] = field(default_factory=list)
    sources: dict[str, bytes] = field(default_factory=dict)  # of the files that findings stand in


@without_collector()
def audit(paths: Sequence[str], step: files.Steps, *, cached: bool = True, known: table.Table | None = None) -> Audit:
    """Infers and judges every operator that these trees register. `known`: what else is known of them."""
    result = Audit()
    found = list(filter(os.path.isfile, files.paths(paths, result.errors)))
    step.expect(len(found))
    store = Store("\n".join(map(os.path.abspath, paths)), cached)
    python = pytree.gather(paths, step)
    called = any(source.operators for source in python.sources)
    whole = tree.read(found, store, step, called=called)
    index = Index((file.index for file in whole.files), Scripts(python.paths).get)
    every = work.operators_of(whole, index, audit_python.without_function(python))
    step.expect(len(every))
    inferred = work.again(every, index, whole, store, step)
    rows = [judge(operator, completed(operator, what, known)) for operator, what in zip(every, inferred, strict=True)]
    # A schema that stands in Python is judged among those, by what C++ does.
    result.rows = [row for row in rows if row.operator.location.path not in python.data]
    bound = {row.operator.location: row.inferred for row in rows if row.operator.implementations}
    operators = [row.operator for row in result.rows]
    for row in result.rows:
        told = findings(row)
        result.checked.append(_checked(row, told))
        result.findings += told
    result.checked += unread(whole, operators)
    result.cpp = CppFacts(writes_of(result.rows), bound, NativeFunctions(work.inference_of(index)))
    result.python = audit_python.judge(python, result.cpp)
    result.checked += [row.checked for row in result.python]
    result.findings += [row.finding for row in result.python if row.finding]
    result.findings += audit_python.fakes(python, operators) + audit_python.untold(python)
    result.checked += patches.read(paths)
    result.sources = {place: index.text(place).data for place in {o.location.path for o in operators}} | python.data
    result.errors += [*whole.errors, *python.errors]
    read = {operator.location for operator in every}
    rest = (r for source in whole.sources.values() for r in source.registrations if r.location not in read)
    texts = [(r.schema.text, r.location) for r in rest] + [(o.said, o.location) for o in python.unparsed]
    result.findings += [bad for text, where in texts if isinstance(bad := patch.parsed_of(text, where), Finding)]
    for problem in (problem for source in whole.sources.values() for problem in source.problems):
        unmapped = None if problem.fatal else patch.unmapped(problem, table.load())
        result.findings += [unmapped] if unmapped else []
        result.errors += [ToolError(problem.message, problem.location)] if problem.fatal else []
    return result


def writes_of(rows: Iterable[AuditedOperator]) -> dict[str, tuple[int, ...]]:
    """Which arguments each operator writes, by position: for Python that calls it."""
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        schema, written = row.operator.schema, set(row.effect.writes)
        places = tuple(n for n, arg in enumerate(schema.args) if arg.name in written)
        name = f"{row.operator.namespace}::{schema.name.rpartition('::')[2]}"
        if row.judgement.verdict is not Verdict.UNKNOWN or written:
            found[name] = places
    return found


def completed(operator: ImplementedOperator, inferred: Inferred, known: table.Table | None) -> Inferred:
    """What was inferred, with what a table says of writes that were not seen and of all that is unknown."""
    effect = known.effect(operator.schema, operator.namespace) if known else None
    if effect is None:
        return inferred
    reason = f"as the table says ({effect.evidence})"

    def answer(found: Answer) -> Answer:
        if found.name in effect.writes:
            return found if found.kind is Kind.WRITTEN else replace(found, kind=Kind.WRITTEN, chain=(), reason=reason)
        return replace(found, kind=Kind.READ, reason=reason) if found.kind is Kind.UNKNOWN else found

    words = effect.results if len(effect.results) == len(inferred.returns) else effect.results * len(inferred.returns)
    returns = tuple(word if was == "unknown" else was for was, word in zip(inferred.returns, words, strict=True))
    return replace(inferred, answers=tuple(map(answer, inferred.answers)), returns=returns)


def judge(operator: ImplementedOperator, inferred: Inferred) -> AuditedOperator:
    """The verdict on an operator's schema. What is unknown counts as declared."""
    schema = operator.schema
    declared = set(schema.writes)
    answers = {answer.name: answer for answer in inferred.answers}
    writes = tuple(arg.name for arg in schema.args if _writes(answers.get(arg.name), arg.name in declared))
    effect = Effect(schema.op, writes, _returns(schema, inferred), "inferred from the implementation")
    judgement = rules.judge(schema, effect)
    if judgement.verdict in (Verdict.RIGHT, Verdict.NEEDS_GUARD):
        unknown = [f"'{answer.name}': {answer.reason}" for answer in inferred.answers if answer.kind is Kind.UNKNOWN]
        unknown += _unknown_returns(schema, inferred)
        if unknown:
            more = f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            judgement = Judgement(Verdict.UNKNOWN, reason=unknown[0] + more)
    return AuditedOperator(operator, inferred, effect, judgement)


def _unknown_returns(schema: Schema, inferred: Inferred) -> list[str]:
    """The returned tensors that are declared to be new, and may be an argument's."""
    pairs = enumerate(zip(schema.returns, inferred.returns, strict=False))
    places = [n for n, (declared, what) in pairs if what == "unknown" and _is_new(declared)]
    return [f"returned value {place}: whether it is an argument's is not known" for place in places]


def _is_new(declared: Arg) -> bool:
    return declared.type.is_tensor and not declared.type.sets


def half(row: AuditedOperator) -> list[str]:
    """The arguments that a schema might have to declare too: half a schema is not written."""
    declared = row.operator.schema.writes
    return [a.name for a in row.inferred.answers if a.kind is Kind.UNKNOWN and a.name not in declared]


def by_hand(row: AuditedOperator) -> str:
    """Why a fix is not written."""
    names = ", ".join(map(repr, half(row)))
    return f" (to be put right by hand: whether {names} is written is not known)" if names else ""


def _writes(answer: Answer | None, declared: bool) -> bool:
    if answer is None:  # no tensor: an annotation there means nothing
        return declared
    return answer.kind is Kind.WRITTEN or (declared and answer.kind is Kind.UNKNOWN)


def _returns(schema: Schema, inferred: Inferred) -> str:
    """The first returned value, as rules.py asks for it."""
    if not schema.returns:
        return "nothing"
    return inferred.returns[0] if inferred.returns else "unknown"


def findings(row: AuditedOperator) -> list[Finding]:
    """What is wrong with one operator."""
    schema, operator = row.operator.schema, row.operator
    found: list[Finding] = []
    if not operator.written:
        return [_unwritten(row)] if row.judgement.verdict is Verdict.WRONG else []
    if row.judgement.code:
        planned = annotate.plan(schema, row.effect, Returns.ALIAS)
        edits = [edit for e in planned for edit in operator.text.edits(e.start, e.end, e.new)]
        message = row.judgement.reason + evidence(row)
        wrong = row.judgement.verdict is Verdict.WRONG
        message += by_hand(row) if wrong else ""
        fix = tuple(edits) if wrong and not half(row) else ()
        found.append(Finding(row.judgement.code, operator.location, schema.op, message, row.judgement.severity, fix))
    for position, returned in enumerate(row.inferred.returns[1:], 1):
        argument = next((arg for arg in schema.args if arg.name == returned), None)
        if argument and not argument.type.sets & schema.returns[position].type.sets:
            message = f"returns '{returned}' in place {position} as if it were a new tensor (to be put right by hand)"
            found.append(Finding("SP103", operator.location, schema.op, message))
    return found


def _unwritten(row: AuditedOperator) -> Finding:
    """A write, or a returned argument, where there is no schema that could tell of it."""
    schema = row.operator.schema
    text = annotate.apply(schema.text, annotate.plan(schema, row.effect, Returns.ALIAS))
    message = f"no schema: torch infers one that declares no write, and it {row.judgement.reason}{evidence(row)}; "
    return Finding("SP004", row.operator.location, schema.op, f'{message}write "{text}"{by_hand(row)}')


def unread(whole: tree.Tree, operators: Sequence[ImplementedOperator]) -> list[Checked]:
    """Operators that are registered without a schema, and whose function gives none that is sure."""
    known = {operator.location for operator in operators}
    reason = "no schema, and the types of its function are not known here"
    named = (one for source in whole.sources.values() for one in source.unwritten)
    return [Checked(u.op, u.location, "", Verdict.UNKNOWN, reason) for u in named if u.location not in known]


def evidence(row: AuditedOperator) -> str:
    """` (a.cpp:3 > b.h:9)` for each argument that is written and not declared."""
    declared = row.operator.schema.writes
    chains = [a for a in row.inferred.answers if a.kind is Kind.WRITTEN and a.name not in declared]
    parts = [
        f"'{a.name}'{f', {a.reason},' if a.chain and a.reason else ''}"
        + (f" at {one_line(' > '.join(f'{path}:{line}' for path, line in a.chain))}" if a.chain else f" {a.reason}")
        for a in chains
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _checked(row: AuditedOperator, told: Sequence[Finding]) -> Checked:
    operator, judgement = row.operator, row.judgement
    wrong = next((finding for finding in told if finding.severity is Severity.ERROR), None)
    if wrong and judgement.verdict is not Verdict.WRONG:  # only what it returns beside the first value
        judgement = Judgement(Verdict.WRONG, wrong.code, wrong.message)
    return Checked(operator.op, operator.location, operator.schema.text, judgement.verdict, judgement.reason)


def report(result: Audit) -> Report:
    """The run as a report. The evidence of every argument is among its facts."""
    facts: dict[str, object] = {"evidence": [_facts(row) for row in result.rows]}
    return Report(tuple(result.checked), tuple(result.findings), tuple(result.errors), facts)


def _facts(row: AuditedOperator) -> dict[str, object]:
    return {
        "op": row.operator.op,
        "namespace": row.operator.namespace or "",
        "implementations": list(row.inferred.functions),
        "returns": list(row.inferred.returns),
        "arguments": [
            {
                "name": answer.name,
                "answer": answer.kind.value,
                "chain": [f"{path}:{line}" for path, line in answer.chain],
                "reason": answer.reason,
            }
            for answer in row.inferred.answers
        ],
    }


@dataclass(frozen=True)
class InferredTable(table.Table):
    """The operator table, and what an audit inferred of operators that it does not know."""

    audit: Audit = field(default_factory=Audit)
    inferred: dict[tuple[str, tuple[str, ...]], Effect] = field(default_factory=dict)

    def schema_of(self, path: str, op: str, function: str) -> str | None:
        wanted, rows = (path, op, function), (row.operator for row in self.audit.rows if not row.operator.written)
        same = (o for o in rows if (o.location.path, o.op, o.implementations[0].text) == wanted)
        return next((operator.schema.text for operator in same), None)

    def effect(self, schema: Schema, namespace: str | None = None) -> Effect | None:
        return super().effect(schema, namespace) or self.inferred.get(_key(schema))

    def knows(self, name: str) -> bool:
        seen = (*(row.checked.op for row in self.audit.python), *(op for op, _ in self.inferred))
        return super().knows(name) or name in seen

    @property
    def left(self) -> list[Finding]:
        """What is found of operators of which not all is known that their schema has to say."""
        effect = super().effect
        rows = (row for row in self.audit.rows if half(row))
        new = (row for row in rows if effect(row.operator.schema, row.operator.namespace) is None)
        return [finding for row in new for finding in findings(row)]


def inferred_table(known: table.Table, result: Audit) -> InferredTable:
    """A table for `apply`. Two operators of one name and arguments that do different things are left out."""
    effects: dict[tuple[str, tuple[str, ...]], set[Effect]] = {}
    for row in result.rows:
        if row.judgement.verdict is not Verdict.UNKNOWN and not half(row):
            effects.setdefault(_key(row.operator.schema), set()).add(row.effect)
    sure = {key: found.pop() for key, found in effects.items() if len(found) == 1}
    return InferredTable(known.namespaces, known.entries, known.recognised, result, sure)


def _key(schema: Schema) -> tuple[str, tuple[str, ...]]:
    return schema.op, tuple(arg.name for arg in schema.args)
