"""Runs the check in a child process and makes a Report of what comes back, whatever becomes of the child.

Imports no torch: what is checked is loaded in the child alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from esimd_ops.trials import child
from esimd_ops.trials.messages import Done, Message, Observation, Request, Roster
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

STEP_S = 300.0  # compiling a kernel from source takes seconds
# A cached graph would hide what this build does.
PROGRAM = child.Program[Message](
    "esimd_ops.parity.child", Message, environment={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
)


@dataclass
class CheckRun:
    """All that is known so far. `ends`: operator -> how the process ended in it; "" where it ended in none."""

    schemas: dict[str, str] = field(default_factory=dict)
    run: tuple[str, ...] = ()
    done: dict[str, Done] = field(default_factory=dict)
    ends: dict[str, child.Ended] = field(default_factory=dict)
    failed: str = ""


def check(request: Request, step: Callable[[str], None] = lambda _: None, *, step_s: float = STEP_S) -> CheckRun:
    """Run the request to its end. A child that dies is started again without the operator that it died of."""
    outcome = CheckRun()

    def without(died: tuple[str, ...]) -> Request:
        return msgspec.structs.replace(request, skip=(*outcome.done, *died))

    def hear(message: Message) -> None:
        if isinstance(message, Roster):
            outcome.schemas, outcome.run = message.schemas, message.run
        elif isinstance(message, Done):
            outcome.done[message.op] = message
        else:
            outcome.failed = message.message

    outcome.ends = child.run(replace(PROGRAM, step_s=step_s), without, hear, step)
    return outcome


def report(
    request: Request, outcome: CheckRun, recorded: tuple[Observation, ...] = (), *, strict: bool = False
) -> Report:
    """Everything as one Report: an operator asked for and not there is an error, not a clean result."""
    place = Location(f"torch.ops.{request.namespace}")
    errors = [ToolError(outcome.failed, place)] if outcome.failed else []
    findings: list[Finding] = []
    checked: list[Checked] = []

    def tell(op: str, told: Observation) -> None:
        findings.append(Finding(told.code, place, op, told.message, Severity(told.severity)))

    for op in outcome.run:
        done = outcome.done.get(op)
        schema = outcome.schemas[op]
        if done:
            for told in done.told:
                tell(op, told)
            reason = f"{done.samples} samples" + (f", {len(done.refused)} refused" if done.refused else "")
            verdict = Verdict(done.verdict) if done.samples or done.told else Verdict.UNKNOWN
            checked.append(Checked(op, place, schema, verdict, reason))
        elif op in outcome.ends:
            verdict = Verdict.UNKNOWN if outcome.ends[op].traceback else Verdict.WRONG
            checked.append(Checked(op, place, schema, verdict, str(outcome.ends[op])))
    for op, ended in outcome.ends.items():
        if ended.traceback:
            errors.append(ToolError(f"{ended.step}: the checking process failed:\n{ended.traceback}", place))
        else:
            tell(op, Observation("PA112", str(ended)))
    checked += [
        Checked(op, place, schema, Verdict.UNKNOWN, "not in the operator table: give --samples")
        for op, schema in outcome.schemas.items()
        if op not in outcome.run and not request.operators
    ]
    if outcome.schemas or not errors:
        absent = [op for op in request.operators if op not in outcome.run]
        errors += [ToolError(f"{op} is {_why_not(op, outcome)}", place) for op in absent]
    for told in recorded:
        op, _, message = told.message.partition(": ")
        tell(op, Observation(told.code, message, told.severity))
    refused = {op: done.refused for op, done in outcome.done.items() if done.refused}
    facts: dict[str, object] = {"namespace": request.namespace, "device": request.device, "refused": refused}
    return Report(tuple(checked), tuple(findings), tuple(errors), facts, strict)


def _why_not(op: str, outcome: CheckRun) -> str:
    if op in outcome.schemas:
        return "registered, but nobody said what to try it with: neither the operator table nor --samples"
    return "not registered"
