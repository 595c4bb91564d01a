"""What was seen, judged: a Record -> a Report in the words of `check`. Knows no torch.

SP101 to SP104 as everywhere, with the calls that show it. Nothing is called over-declared: what was not seen written
may have been written with what it held, and is said so. OB101, OB102: what no schema could say.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import msgspec

from esimd_ops.trials.files import near
from schema_patch.model import Checked, Effect, Finding, Location, Report, Severity, ToolError, Verdict
from schema_patch.schemas import grammar, rules
from schema_patch.schemas.grammar import Arg, Schema

from .record import OperatorSeen, ResultSeen, SeenRecord, TimesSeen, Where

NEVER = "never called"


def report(record: SeenRecord, *, strict: bool = False) -> Report:
    """The verdict on every operator of the record, and what it rests on."""
    checked: list[Checked] = []
    findings: list[Finding] = []
    for op, seen in record.operators.items():
        schema = grammar.parse(seen.schema)
        told = list(_findings(op, schema, seen)) if seen.watched else []
        findings += told
        checked.append(_checked(op, schema, seen, told))
    facts: dict[str, object] = {
        "processes": record.processes,
        "spent_s": round(record.spent_s, 6),
        "ran_s": round(record.ran_s, 6),
        "notes": list(record.notes),
        "operators": {op: msgspec.to_builtins(seen) for op, seen in record.operators.items() if seen.calls},
    }
    return Report(tuple(checked), tuple(findings), tuple(_missing(record)), facts=facts, strict=strict)


def _missing(record: SeenRecord) -> Iterator[ToolError]:
    """Namespaces that were asked for and that nobody has."""
    have = {op.partition("::")[0] for op in record.operators}
    for name in (name for name in record.namespaces if name not in have):
        others = sorted((have - {*record.namespaces}) | {*record.others})
        near = difflib.get_close_matches(name, {*others, *have}, 1)
        words = f"did you mean '{near[0]}'?" if near else f"there are those of: {', '.join(others) or 'torch alone'}"
        yield ToolError(f"namespace '{name}': expected operators torch.ops.{name}, found none; {words}")


def effect(schema: Schema, seen: OperatorSeen) -> Effect | None:
    """What the operator was seen to do; None where it never was watched."""
    if not seen.watched:
        return None
    writes = tuple(arg.name for arg in schema.args if arg.name in seen.writes)
    words = [_word(result, ret) for result, ret in zip(seen.results, schema.returns, strict=True)]
    returns = "nothing" if not words else words[0] if len(set(words)) == 1 else ", ".join(words)
    return Effect(schema.op, writes, returns, evidence(seen))


def evidence(seen: OperatorSeen) -> str:
    """Numbers and places behind what is said of an operator."""
    parts = [f"{seen.watched} of {seen.calls} calls watched"]
    parts += [f"'{name}' written in {_times(times)}" for name, times in seen.writes.items()]
    return "; ".join([*parts, f"first at {where(seen.first)}"])


def never_given(schema: Schema, seen: OperatorSeen) -> tuple[str, ...]:
    """Tensor arguments that no watched call had, or none with a byte in it."""
    return tuple(arg.name for arg in schema.args if arg.type.is_tensor and arg.name not in seen.given)


def where(call: Where | None) -> str:
    """A call in words, with the path as seen from here."""
    if call is None:
        return "?"
    path, _, line = call.place.rpartition(":")
    return str(Where(f"{near(path)}:{line}", call.shapes, call.call))


def unsure(schema: Schema, seen: OperatorSeen) -> Iterator[str]:
    """What could not be told of an operator that was watched, in words."""
    for name in schema.writes:
        if name in seen.writes:
            continue
        if name in seen.same:
            yield f"'{name}' was written in {seen.same[name].calls} calls, always with the value that it held"
        elif name in seen.given:
            yield (
                f"'{name}' is declared as written, and in {seen.given[name]} watched calls no byte of it changed: "
                "written with the same value, or only read"
            )
        else:
            yield f"'{name}' is declared as written, and was never given"
    for name, times in seen.same.items():
        if name not in schema.writes and name not in seen.writes:
            yield f"'{name}' is not declared as written, and was written with the value that it held, {_times(times)}"
    for names, times in seen.either.items():
        if not any(name in seen.writes for name in names.split(" or ")):
            yield f"'{names}', given as the same memory, changed and is not declared as written, {_times(times)}"
    for handed, times in seen.meanwhile.items():
        yield f"{_call(handed)} changed meanwhile, and other threads ran: by whom is not known, {_times(times)}"
    for index, result in enumerate(seen.results):
        if _word(result, schema.returns[index]) == "unknown" and not (result.view or result.twins):
            reason = "differed from call to call" if result.same else "never held a byte"
            yield f"what result {index} is {reason}"


def doubts(report: Report) -> Iterator[str]:
    """Lines for what is neither right nor a finding: it must not look like the one or the other."""
    never = [row.op for row in report.checked if row.reason == NEVER]
    for row in report.checked:
        if row.verdict is Verdict.UNKNOWN and row.reason != NEVER:
            yield f"{row.location}: unknown: {row.op}: {row.reason}"
    if never:
        yield f"never called: {', '.join(never)}"


def _findings(op: str, schema: Schema, seen: OperatorSeen) -> Iterator[Finding]:
    place, found = _location(seen.first), effect(schema, seen)
    assert found
    for rule in (rules.undeclared_write, rules.undeclared_alias, rules.private_buffer):
        if judgement := rule(schema, found):
            words = f"{judgement.reason}: {_behind(judgement.code, schema, seen)}"
            yield Finding(judgement.code, place, op, words)
    for index, result in enumerate(seen.results):
        at_times = result.same if _word(result, schema.returns[index]) == "unknown" else {}
        for what, table in (("memory of ", result.view), ("", at_times)):
            for name, times in table.items():
                declared = next(arg for arg in schema.args if arg.name == name).type.sets
                if not declared & schema.returns[index].type.sets:
                    words = f"returns {what}'{name}' as if it were a new tensor: {_times(times)}"
                    yield Finding("SP103", place, op, words)
        for other, times in result.twins.items():
            which = f"results {other} and {index}" if other != str(index) else f"two tensors of result {index}"
            yield Finding("OB102", place, op, f"{which} share memory: {_times(times)}")
    for names, times in seen.outside.items():
        words = f"writes beside its arguments, in the storage of {names}: {_times(times)}"
        yield Finding("OB101", place, op, words)
    for handed, times in seen.earlier.items():
        words = f"changed {_call(handed)}, which was not given to it: {_times(times)}"
        yield Finding("OB101", place, op, words)
    if (judgement := rules.alias_return(schema, found)) and not rules.undeclared_alias(schema, found):
        yield Finding(judgement.code, place, op, judgement.reason, Severity.WARNING)


def _behind(code: str, schema: Schema, seen: OperatorSeen) -> str:
    """The calls that a finding rests on."""
    if code in ("SP101", "SP102"):
        undeclared = [(n, times) for n, times in seen.writes.items() if n not in schema.writes]
        return "; ".join(f"'{name}' in {_times(times, seen)}" for name, times in undeclared)
    if code == "SP103":
        return "; ".join(_times(times, seen) for result in seen.results for times in result.same.values())
    return "; ".join(
        (f"'{kept.argument}'" if kept.argument else "the result")
        + (f" of {kept.op}" if kept.op != f"{schema.namespace}::{schema.op}" else "")
        + f" of {where(kept.before)} (call {kept.before.call}) is that of {where(kept.times.first)} "
        + f"(call {kept.times.first.call})"
        + f"; {_times(kept.times, seen)}"
        for result in seen.results
        if (kept := result.kept)
    )


def _checked(op: str, schema: Schema, seen: OperatorSeen, told: list[Finding]) -> Checked:
    place = _location(seen.first)
    if not seen.watched:
        reasons = ", ".join(f"{why} ({count})" for why, count in {**seen.unwatched, **seen.allowed}.items())
        what = f"{seen.calls} calls, none of them watched: {reasons or 'not among those chosen'}"
        return Checked(op, place, seen.schema, Verdict.UNKNOWN, what if seen.calls else NEVER)
    wrong = [finding.message for finding in told if finding.severity is Severity.ERROR]
    doubts = list(unsure(schema, seen))
    if wrong:
        return Checked(op, place, seen.schema, Verdict.WRONG, "; ".join([*wrong, *doubts]))
    if doubts:
        return Checked(op, place, seen.schema, Verdict.UNKNOWN, "; ".join(doubts))
    missing = never_given(schema, seen)
    reason = evidence(seen) + (f"; never given: {', '.join(missing)}" if missing else "")
    return Checked(op, place, seen.schema, Verdict.NEEDS_GUARD if told else Verdict.RIGHT, reason)


def _word(result: ResultSeen, declared: Arg) -> str:
    """The one word for all that a result was. An argument that was not always given makes it new where it was not."""
    if not declared.type.is_tensor:
        return "fresh"
    if result.view or result.twins:
        return "unknown"
    if result.kept:
        return "unknown" if result.same else f"private buffer of {result.kept.ring}".removesuffix(" of 1")
    if len(result.same) == 1:
        name = next(iter(result.same))
        return name if result.fresh == result.without.get(name, 0) else "unknown"
    return "fresh" if result.fresh and not result.same else "unknown"


def _times(times: TimesSeen, seen: OperatorSeen | None = None) -> str:
    calls = f"{times.calls} of {seen.watched}" if seen else str(times.calls)
    parts = [f"{calls} watched call{'s' if times.calls != 1 or seen else ''}"]
    if times.bytes:
        parts.append(f"up to {times.bytes}{f' of {times.of}' if times.of else ''} bytes")
    return f"{', '.join(parts)}, first at {where(times.first)}"


def _call(handed: str) -> str:
    op, _, place = handed.rpartition(" at ")
    return f"{op} at {where(Where(place, '', 0))}"


def _location(call: Where | None) -> Location:
    if call is None:
        return Location("torch.ops")
    path, _, line = call.place.rpartition(":")
    return Location(near(path), int(line), 1) if line.isdigit() else Location(call.place)
