"""Runs operators of a host build under schedules, in a child process, and makes a Report of what was seen.

Imports no torch. Knows the kinds of finding and what they are called in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from esimd_ops.trials import child
from esimd_ops.trials.messages import Roster
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

from . import lines
from .order import Message, Order, RaceRun, Ran, Row
from .suppressions import Suppressions
from .watch import Seen

CODES = {
    "race": "HR101",
    "race-of-items": "HR102",
    "slm-race": "HR103",
    "out-of-bounds": "HR104",
    "slm-out-of-bounds": "HR105",
    "register-index": "HR105",
    "unwritten": "HR106",
    "slm-unwritten": "HR106",
    "poison-stored": "HR107",
    "divergent-barrier": "HR108",
    "barrier-mismatch": "HR108",
    "deadlock": "HR108",
    "wrote-read-only": "HR109",
    "surface": "HR110",
}
STEP_S = 600.0  # the largest shapes under the slowest schedules take minutes
PROGRAM = child.Program[Message]("esimd_ops.races.child", Message)
CONFLICTS = ("race", "race-of-items", "slm-race")


def run(order: Order, step: Callable[[str], None] = lambda _: None, *, step_s: float = STEP_S) -> RaceRun:
    """Run the order to its end; a child that dies is started again without the operator that it died of."""
    outcome = RaceRun()

    def without(died: tuple[str, ...]) -> Order:
        return msgspec.structs.replace(order, skip=(*order.skip, *outcome.ran, *died))

    def hear(message: Message) -> None:
        if isinstance(message, Row):
            outcome.rows.append(message)
        elif isinstance(message, Ran):
            outcome.ran[message.op] = message
        elif isinstance(message, Roster):
            outcome.there = message
        else:
            outcome.failed = message.message

    outcome.ends = child.run(replace(PROGRAM, step_s=step_s), without, hear, step)
    return outcome


def report(order: Order, outcome: RaceRun, suppressions: Suppressions, *, strict: bool = False) -> Report:
    """One finding a pair of source lines; an operator asked for and not there is an error, not a clean result."""
    place = Location(f"torch.ops.{order.namespace}")
    errors = [ToolError(outcome.failed, place)] if outcome.failed else []
    findings: list[Finding] = []
    checked: list[Checked] = []
    for op, ran in outcome.ran.items():
        rows = [row for row in outcome.rows if row.op == op]
        told = [*_wrong(place, op, rows), *_seen(op, rows, suppressions)]
        findings += told
        if ran.error:
            errors.append(ToolError(f"{op}: {ran.error}", place))
        wrong = any(finding.severity is Severity.ERROR for finding in told)
        verdict = Verdict.WRONG if wrong else Verdict.RIGHT if rows else Verdict.UNKNOWN
        reason = f"{len(rows)} shapes under {len(order.schedules)} schedules" if rows else "no shape to run"
        checked.append(Checked(op, place, ran.schema, verdict, reason))
    for op, ended in outcome.ends.items():
        if ended.traceback or not op:
            errors.append(ToolError(f"{ended.step}: the process {ended.how}\n{ended.traceback}".rstrip(), place))
        else:
            findings.append(Finding("HR112", place, op, str(ended)))
            checked.append(Checked(op, place, "", Verdict.WRONG, str(ended)))
    if not outcome.failed:
        errors += [ToolError(f"{op} is {_why_not(op, outcome)}", place) for op in order.operators if _left(op, outcome)]
    checked += [
        Checked(op, place, schema, Verdict.UNKNOWN, _why_not(op, outcome))
        for op, schema in outcome.there.schemas.items()
        if not order.operators and _left(op, outcome)
    ]
    if outcome.rows and not any(row.judged for row in outcome.rows):
        message = "built without --checks: only results were compared, no access was judged"
        findings.append(Finding("HR101", place, "", message, Severity.NOTE))
    findings += [
        Finding("HR101", Location(suppressions.path), "", f"suppression never used: {unused}", Severity.WARNING)
        for unused in suppressions.unused()
    ]
    facts: dict[str, object] = {
        "namespace": order.namespace,
        "schedules": order.schedules,
        "wrong": [
            {"op": row.op, "shape": row.label, **{k: v[0] for k, v in row.wrong.items()}} for row in outcome.rows
        ],
        "resident": [
            {"op": row.op, "shape": row.label, "groups": groups(row), **row.resident}
            for row in outcome.rows
            if row.resident
        ],
    }
    return Report(tuple(checked), tuple(findings), tuple(errors), facts, strict)


def groups(row: Row) -> int:
    """Of the launch with most of them."""
    return max((launched.groups for launched in row.launched), default=0)


def _left(op: str, outcome: RaceRun) -> bool:
    return op not in outcome.ran and op not in outcome.ends


def _why_not(op: str, outcome: RaceRun) -> str:
    if op in outcome.there.schemas:
        return "registered, but nobody said what to try it with: neither the operator table nor --samples"
    return "not registered"


def _wrong(place: Location, op: str, rows: list[Row]) -> list[Finding]:
    told = []
    for row in rows:
        worst = {name: share for name, (share, _) in row.wrong.items() if share}
        if not worst:
            continue
        output = next(output for share, output in row.wrong.values() if share)
        if len(row.wrong) > 1 and len({share for share, _ in row.wrong.values()}) == 1:
            words = f"{next(iter(worst.values())):.1%} under every schedule: a matter of numbers, which `check` judges"
            told.append(Finding("HR111", place, op, f"{row.label}: '{output}' wrong, {words}", Severity.WARNING))
        else:
            words = ", ".join(f"{name}: {share:.1%}" for name, share in worst.items())
            told.append(Finding("HR111", place, op, f"{row.label}: '{output}' wrong under {words}"))
    return told


def _seen(op: str, rows: list[Row], suppressions: Suppressions) -> list[Finding]:
    """Findings of the runtime, once a kind, tensor and pair of lines, whatever the shapes and code addresses."""
    merged: dict[tuple[str, str, Location, Location], list[tuple[Row, Seen, Location, Location]]] = {}
    for row in rows:
        for seen in row.seen:
            now, before = (lines.locate(party.file, party.offset) for party in (seen.now, seen.before))
            if seen.kind == "barrier-mismatch" and now == before:
                continue  # one line, compiled twice
            one, other = sorted((now, before)) if seen.kind in CONFLICTS else (now, before)
            merged.setdefault((seen.kind, seen.subject, one, other), []).append((row, seen, now, before))
    told = []
    for (kind, subject, _, _), instances in merged.items():
        row, first, now, before = instances[0]
        same = all(seen.same_value for _, seen, _, _ in instances)
        if suppressions.covers(op, subject, now, before, same_value=same):
            continue
        count = sum(seen.count for _, seen, _, _ in instances)
        words = _words(kind, subject, first, before)
        again = f", {count} times" if count > 1 else ""
        benign = "; each such write stored what was there" if same and kind in CONFLICTS else ""
        told.append(Finding(CODES[kind], now, op, f"{words} ({row.label}{again}){benign}"))
    return told


def _words(kind: str, subject: str, seen: Seen, before: Location) -> str:
    did, detail = seen.now.did, seen.detail
    who = f"group {seen.now.group}, item {seen.now.item}"
    if kind in CONFLICTS:
        other = f"{seen.before.did} at {before} by group {seen.before.group}, item {seen.before.item}"
        return f"{did} of '{subject}' at {detail} by {who} races with {other}"
    if kind in ("out-of-bounds", "slm-out-of-bounds"):
        return f"{did} out of bounds of '{subject}': {detail}, by {who}"
    if kind == "register-index":
        return f"register index out of range: {subject}"
    if kind in ("unwritten", "slm-unwritten"):
        return f"read of '{subject}' at {detail} by {who}, which nobody had written"
    if kind == "poison-stored":
        return (
            f"stored into '{subject}' what came from memory or a register that nobody had written: {detail}, by {who}"
        )
    if kind == "wrote-read-only":
        return f"wrote '{subject}', which it must only read, at {detail} by {who}"
    if kind == "barrier-mismatch":
        return f"{detail}: here and at {before}, group {seen.now.group}"
    return f"{subject}: {detail}, {who}"
