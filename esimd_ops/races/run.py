"""Runs operators of a host build under schedules, in a child process, and makes a Report of what was seen.

Imports no torch. Knows the kinds of finding and what they are called in words.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

from . import lines
from .child import Message, Order, Ran, Step
from .suppressions import Suppressions
from .trial import Row
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
CONFLICTS = ("race", "race-of-items", "slm-race")


@dataclass
class Outcome:
    """All that came back."""

    rows: list[Row] = field(default_factory=list)
    ran: dict[str, Ran] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)  # operator -> how the process ended in it
    failed: str = ""


def run(order: Order, step: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run the order to its end; a child that dies is started again without the operator that it died of."""
    outcome = Outcome()
    while True:
        skip = (*order.skip, *outcome.ran, *outcome.ends)
        last = Step("", "starting")
        child = _Child(msgspec.structs.replace(order, skip=skip))
        for message in child.messages():
            if isinstance(message, Step):
                last = message
                step(f"{message.op} {message.what}".strip())
            elif isinstance(message, Row):
                outcome.rows.append(message)
            elif isinstance(message, Ran):
                outcome.ran[message.op] = message
            else:
                outcome.failed = message.message
        end = child.end()
        if outcome.failed or not end:
            return outcome
        if not last.op:
            outcome.failed = f"the process {end}"
            return outcome
        outcome.ends[last.op] = f"{last.what}: {end}"


class _Child:
    def __init__(self, order: Order) -> None:
        read, write = os.pipe()
        self._read = os.fdopen(read, "rb")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "esimd_ops.races.child", str(write)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(write,),
        )
        os.close(write)
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(order))
        self._process.stdin.close()

    def messages(self) -> Iterator[Message]:
        decoder = msgspec.json.Decoder(Message)
        try:
            for line in self._read:
                yield decoder.decode(line)
        finally:
            self._read.close()
            if sys.exc_info()[0] is not None:
                self._process.kill()

    def end(self) -> str:
        """How the process ended, in words; empty where all is well. Raises ToolError for an error of our own."""
        code = self._process.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.close()
        if code == 1 and "Traceback (most recent call last)" in errors:
            raise ToolError(f"the process that runs the operators failed:\n{errors}")
        said = f": {errors.splitlines()[-1]}" if errors else ""
        if code < 0:
            return f"ended by {signal.Signals(-code).name}{said}"
        return f"ended with exit code {code}{said}" if code else ""


def report(order: Order, outcome: Outcome, suppressions: Suppressions, *, strict: bool = False) -> Report:
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
    for op, end in outcome.ends.items():
        findings.append(Finding("HR112", place, op, end))
        checked.append(Checked(op, place, "", Verdict.WRONG, end))
    if not outcome.failed:
        absent = [op for op in order.operators if op not in outcome.ran and op not in outcome.ends]
        errors += [ToolError(f"{op} is not registered", place) for op in absent]
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
    }
    return Report(tuple(checked), tuple(findings), tuple(errors), facts, strict)


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
