"""The Python side of an audit: operators registered in Python, and the fakes of all operators. Judges; prints nothing.

Reads files; flow is in pyflow.py. An operator whose mutates_args is computed at run time is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schema_patch.inference.operators import Defined, ImplementedOperator
from schema_patch.model import Checked, Edit, Finding, Location, Severity, Verdict
from schema_patch.python import edits as pyedits
from schema_patch.python import flow
from schema_patch.python.modules import Modules
from schema_patch.python.registrations import FakeSignature, PyOperator
from schema_patch.python.tree import Python
from schema_patch.python.values import Natives, arguments
from schema_patch.report.text import one_line
from schema_patch.schemas import annotate
from schema_patch.schemas.grammar import Schema
from schema_patch.schemas.inferred import Answer, Inferred, Kind, Native
from schema_patch.text.mapped import Unreadable


@dataclass(frozen=True)
class CppFacts:
    """What C++ does that Python has to do with: the arguments that operators write, by position; operators whose schema
    stands in Python, by where; functions that Python calls by other ways."""

    writes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    bound: Mapping[Location, Inferred] = field(default_factory=dict)
    natives: Natives = field(default_factory=dict[str, Native | None])


@dataclass(frozen=True, slots=True)
class PyRow:
    """One operator that Python registers and its verdict; `declares` is what it says after the edits of its finding."""

    operator: PyOperator
    checked: Checked
    finding: Finding | None = None
    declares: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()


def without_function(python: Python) -> list[Defined]:
    """The schemas that Python defines and gives no function to: C++ may do so."""
    implemented = {op for source in python.sources for op in source.implemented}
    found = []
    for operator in (o for source in python.sources for o in source.operators):
        if operator.schema and not operator.function and operator.name not in implemented:
            namespace = operator.name.rpartition("::")[0] or None
            found.append(Defined(operator.location, namespace, operator.schema))
    return found


def untold(python: Python) -> list[Finding]:
    """Registrations that cannot be judged because the name is computed."""
    message = "an operator is registered by a name that is computed: not judged"
    places = (place for source in python.sources for place in source.untold)
    return [Finding("SP002", place, "", message, Severity.WARNING) for place in places]


def judge(python: Python, known: CppFacts) -> list[PyRow]:
    """The verdict on every operator that Python registers."""
    found: list[PyRow] = []
    modules = Modules(python.paths)
    implemented = {op: (source, name) for source in python.sources for op, name in source.implemented.items()}
    for source in python.sources:
        bare = annotate.habit([schema for o in source.operators if (schema := o.parsed)])
        for operator in source.operators:
            home, name = source, operator.function
            if not name and operator.name in implemented:
                home, name = implemented[operator.name]
            function = source.decorated.get(operator.location) or home.functions.get(name)
            cpp = known.bound.get(operator.location)
            if function is not None:
                read = flow.read(function, home.path, home.functions, known.writes, modules, known.natives)
                answers, returns = _as_declared(operator, *read)
            elif cpp is not None:
                answers, returns = {answer.name: answer for answer in cpp.answers}, cpp.returns
            else:
                found.append(PyRow(operator, _checked(operator, Verdict.UNKNOWN, "its function is not in this file")))
                continue
            row = _judged(operator, answers, returns, function, python.data[source.path], bare)
            found.append(replace(row, answers=tuple(answers.values())))
    return found


def _as_declared(
    operator: PyOperator, answers: dict[str, Answer], returns: tuple[str, ...]
) -> tuple[dict[str, Answer], tuple[str, ...]]:
    """What a function does, by the names of its operator's schema: it may call its parameters otherwise."""
    schema = operator.parsed
    if schema is None:
        return answers, returns
    pairs = list(zip(schema.args, answers.values(), strict=False))
    names = {answer.name: arg.name for arg, answer in pairs}
    tensors = {arg.name: replace(answer, name=arg.name) for arg, answer in pairs if arg.type.is_tensor}
    return tensors, tuple(names.get(what, what) for what in returns)


def _checked(operator: PyOperator, verdict: Verdict, reason: str) -> Checked:
    return Checked(operator.op, operator.location, operator.said, verdict, reason)


def _judged(
    operator: PyOperator,
    answers: Mapping[str, Answer],
    returns: Sequence[str],
    function: ast.FunctionDef | None,
    data: bytes,
    bare: bool,
) -> PyRow:
    schema, declares = operator.parsed, operator.declares
    aliases, unsure = _undeclared(schema, returns)
    written = [name for name, answer in answers.items() if answer.kind is Kind.WRITTEN]
    missing = [name for name in written if name not in (declares or ())]
    chains = "; ".join(f"'{n}' at {one_line(answers[n].chain[0][0])}:{answers[n].chain[0][1]}" for n in missing)
    if declares is None:
        what = "the schema does not parse" if operator.schema else "mutates_args is not written as a constant"
        message = f"{what}, and it is seen to write {chains}: see by hand that this is declared"
        finding = Finding("SP002", operator.location, operator.op, message, Severity.WARNING) if missing else None
        return PyRow(operator, _checked(operator, Verdict.UNKNOWN, what), finding)
    if missing:
        reason = f"writes {', '.join(map(repr, missing))} undeclared" + (
            f"; only {', '.join(map(repr, declares))} declared" if declares else ""
        )

        def edits() -> tuple[Edit, ...]:
            if operator.schema and schema:
                first = returns[0] if returns and returns[0] in answers else "unknown"
                return pyedits.annotated(schema, operator.schema, (*declares, *missing), first, bare=bare)
            if function is None:
                return ()
            _tensors(function, missing)
            return pyedits.named(data, operator.mutates_span, missing)

        return _wrong(operator, "SP102" if declares else "SP101", reason, f": {chains}", (*declares, *missing), edits)
    if aliases:
        return _aliasing(operator, schema, aliases, declares, bare)
    unknown = [(name, a) for name, a in answers.items() if a.kind is Kind.UNKNOWN and name not in declares]
    if unknown:
        return PyRow(operator, _checked(operator, Verdict.UNKNOWN, f"'{unknown[0][0]}': {unknown[0][1].reason}"))
    if unsure:
        reason = f"returned value {unsure[0]}: whether it is an argument's is not known"
        return PyRow(operator, _checked(operator, Verdict.UNKNOWN, reason))
    return PyRow(operator, _checked(operator, Verdict.RIGHT, "declares what is seen to be written"))


def _undeclared(schema: Schema | None, returns: Sequence[str]) -> tuple[dict[int, str], list[int]]:
    """The places at which an argument is returned as if it were a new tensor, and those where it may be."""
    aliases: dict[int, str] = {}
    unsure: list[int] = []
    for place, what in enumerate(returns):
        declared = schema.returns[place] if schema and place < len(schema.returns) else None
        if what == "fresh" or (schema and (declared is None or not declared.type.is_tensor)):
            continue
        sets = declared.type.sets if declared else frozenset()
        argument = next((arg for arg in schema.args if arg.name == what), None) if schema else None
        if what == "unknown" and not sets:
            unsure.append(place)
        elif what != "unknown" and not (argument and argument.type.sets & sets):
            aliases[place] = what
    return aliases, unsure


def _aliasing(
    operator: PyOperator, schema: Schema | None, aliases: Mapping[int, str], declares: Sequence[str], bare: bool
) -> PyRow:
    """An operator that hands an argument, or a view of it, back as if it were new."""
    what = "; ".join(f"returns '{name}'" + (f" in place {n}" if n else "") for n, name in aliases.items())

    def edits() -> tuple[Edit, ...]:
        if not (operator.schema and schema):
            raise Unreadable("torch takes no operator of this kind that returns an argument: return nothing, or a copy")
        if set(aliases) != {0}:
            raise Unreadable("it is not the first returned value")
        return pyedits.annotated(schema, operator.schema, declares, aliases[0], bare=bare)

    return _wrong(operator, "SP103", f"{what} as if it were a new tensor", "", declares, edits)


def _wrong(
    operator: PyOperator, code: str, reason: str, told: str, declares: Sequence[str],
    edits: Callable[[], tuple[Edit, ...]],
) -> PyRow:  # fmt: skip
    """The finding for this reason, `told` behind it, with the edits after which the operator declares so."""
    try:
        finding = Finding(code, operator.location, operator.op, reason + told, Severity.ERROR, edits())
    except Unreadable as why:
        message = f"{reason}{told} (to be put right by hand: {why})"
        finding = Finding(code, operator.location, operator.op, message)
    return PyRow(operator, _checked(operator, Verdict.WRONG, reason), finding, tuple(declares))


def _tensors(function: ast.FunctionDef, names: Iterable[str]) -> None:
    """Raises Unreadable where torch would not take one of these parameters in mutates_args: only tensors may be."""
    kinds = {a.arg: ast.unparse(a.annotation) for a in arguments(function) if a.annotation}
    for name in names:
        if "Tensor" not in kinds.get(name, "Tensor"):
            raise Unreadable(f"'{name}' is a {kinds[name]}, and torch takes only tensors in mutates_args")


def fakes(python: Python, operators: Iterable[ImplementedOperator]) -> list[Finding]:
    """Operators of C++ without a fake, and fakes that take something else than their schema says."""
    by_name: dict[str, list[FakeSignature]] = {}
    perhaps = set[str]().union(*(source.perhaps for source in python.sources))
    for source in python.sources:
        for fake in source.fakes:
            name = fake.name.partition(".")[0]
            for key in {name, name.rpartition("::")[2]}:
                by_name.setdefault(key, []).append(fake)
    found: list[Finding] = []
    for operator in (one for one in operators if one.written):
        name = operator.schema.name.rpartition("::")[2]
        full = f"{operator.namespace}::{name}"
        mine = by_name.get(full) or ([] if operator.namespace else by_name.get(name, []))
        composite = any("Composite" in i.key for i in operator.implementations)
        # torch makes one itself for an operator that only writes and says so.
        trivial = bool(operator.schema.writes) and not operator.schema.returns
        if not (mine or operator.fakes or composite or trivial or name in perhaps) and python.files:
            message = "no fake: torch.compile cannot trace a call of it (torch.library.register_fake)"
            found.append(Finding("SP107", operator.location, operator.op, message, Severity.WARNING))
        if len({fake.name for fake in mine}) == 1:  # else they may be those of several operators of one name
            found += [finding for fake in mine for finding in _compare(operator, fake)]
    return found


def _compare(operator: ImplementedOperator, fake: FakeSignature) -> list[Finding]:
    """A fake with other parameters fails when it is called; one with other defaults answers for another call."""
    schema = operator.schema
    if fake.parameters is None or any(name == "*" for name, _ in fake.parameters) or operator.schema.overload:
        return []
    needed = sum(default is None for _, default in fake.parameters)
    where, op = fake.location, operator.op
    if not needed <= len(schema.args) <= len(fake.parameters):
        takes = f"{needed} to {len(fake.parameters)}" if needed < len(fake.parameters) else str(needed)
        message = f"the fake takes {takes} arguments, the schema at {operator.location} has {len(schema.args)}"
        # torch does not hand on what is as it is by default.
        often = all(arg.default is not None for arg in schema.args[len(fake.parameters) :])
        if often and needed <= len(schema.args):
            message += f": a call that gives '{schema.args[len(fake.parameters)].name}' fails"
            return [Finding("SP108", where, op, message, Severity.WARNING)]
        return [Finding("SP108", where, op, message)]
    pairs = zip(schema.args, fake.parameters, strict=False)
    told = ((name, given, arg.default) for arg, (name, given) in pairs if arg.name == name)
    return [
        Finding(
            "SP108", where, op, f"'{name}' is {given} by default in the fake, {said} in the schema", Severity.WARNING
        )
        for name, given, said in told
        if None not in (given, said) and not _same(str(given), str(said))
    ]


def _same(first: str, second: str) -> bool:
    """Whether two defaults are one value, as far as their spelling tells."""
    plain = [text.strip().strip("\"'").replace(" ", "") for text in (first, second)]
    try:
        return float(plain[0]) == float(plain[1])
    except ValueError:
        names = {"True": "1", "False": "0", "true": "1", "false": "0"}
        return names.get(plain[0], plain[0]).lower() == names.get(plain[1], plain[1]).lower() or "." in plain[1]
