"""Runs operators of a host build under schedules, in a child process, and makes a Report of what was seen.

Imports no torch. Knows the kinds of finding and what they are called in words.
"""

from __future__ import annotations

from collections.abc import Callable

from esimd_ops.trials import child
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

from . import lines
from .order import Order, RaceMessage, RaceRun, SampleRow
from .suppressions import Suppressions
from .watch import AccessSeen

CONFLICT = "{did} of '{subject}' at {detail} by {who} races with {other}"
OUTSIDE = "{did} out of bounds of '{subject}': {detail}, by {who}"
UNWRITTEN = "read of '{subject}' at {detail} by {who}, which nobody had written"
PLAIN = "{subject}: {detail}, {who}"
KINDS = {  # by the runtime's words: the code, and what it says
    "race": ("HR101", CONFLICT),
    "race-of-items": ("HR102", CONFLICT),
    "slm-race": ("HR103", CONFLICT),
    "out-of-bounds": ("HR104", OUTSIDE),
    "slm-out-of-bounds": ("HR105", OUTSIDE),
    "register-index": ("HR105", "register index out of range: {subject}"),
    "unwritten": ("HR106", UNWRITTEN),
    "slm-unwritten": ("HR106", UNWRITTEN),
    "poison-stored": (
        "HR107",
        "stored into '{subject}' what came from memory or a register that nobody had written: {detail}, by {who}",
    ),
    "divergent-barrier": ("HR108", PLAIN),
    "barrier-mismatch": ("HR108", "{detail}: here and at {before}, group {group}"),
    "deadlock": ("HR108", PLAIN),
    "wrote-read-only": ("HR109", "wrote '{subject}', which it must only read, at {detail} by {who}"),
    "surface": ("HR110", PLAIN),
}
STEP_S = 600.0  # the largest shapes under the slowest schedules take minutes
PROGRAM = child.ChildProgram("esimd_ops.races.child", RaceMessage)


def run(order: Order, step: Callable[[str], None] = lambda _: None, *, step_s: float = STEP_S) -> RaceRun:
    """Run the order to its end."""
    return RaceRun().go(PROGRAM, order, step, step_s)


def report(order: Order, outcome: RaceRun, suppressions: Suppressions, *, strict: bool = False) -> Report:
    """One finding a pair of source lines; an operator asked for and not there is an error, not a clean result."""
    place = Location(f"torch.ops.{order.namespace}")
    errors = list(outcome.errors(place, order.operators))
    findings: list[Finding] = []
    checked: list[Checked] = []
    for op, ran in outcome.done.items():
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
    checked += outcome.unknown(place, order.operators)
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


def groups(row: SampleRow) -> int:
    """Of the launch with most of them."""
    return max((launched.groups for launched in row.launched), default=0)


def _wrong(place: Location, op: str, rows: list[SampleRow]) -> list[Finding]:
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


def _seen(op: str, rows: list[SampleRow], suppressions: Suppressions) -> list[Finding]:
    """Findings of the runtime, once a kind, tensor and pair of lines, whatever the shapes and code addresses."""
    merged: dict[tuple[str, str, Location, Location], list[tuple[SampleRow, AccessSeen, Location, Location]]] = {}
    for row in rows:
        for seen in row.seen:
            now, before = (lines.locate(party.file, party.offset) for party in (seen.now, seen.before))
            if seen.kind == "barrier-mismatch" and now == before:
                continue  # one line, compiled twice
            one, other = sorted((now, before)) if KINDS[seen.kind][1] is CONFLICT else (now, before)
            merged.setdefault((seen.kind, seen.subject, one, other), []).append((row, seen, now, before))
    told = []
    for (kind, subject, _, _), instances in merged.items():
        row, first, now, before = instances[0]
        same = all(seen.same_value for _, seen, _, _ in instances)
        if suppressions.covers(op, subject, now, before, same_value=same):
            continue
        count = sum(seen.count for _, seen, _, _ in instances)
        code, form = KINDS[kind]
        words = form.format(subject=subject, **_words(first, before))
        again = f", {count} times" if count > 1 else ""
        benign = "; each such write stored what was there" if same and form is CONFLICT else ""
        told.append(Finding(code, now, op, f"{words} ({row.label}{again}){benign}"))
    return told


def _words(seen: AccessSeen, before: Location) -> dict[str, object]:
    """What the words of a kind may ask for."""
    now, there = seen.now, seen.before
    other = f"{there.did} at {before} by group {there.group}, item {there.item}"
    who = f"group {now.group}, item {now.item}"
    return {"did": now.did, "detail": seen.detail, "who": who, "other": other, "before": before, "group": now.group}
