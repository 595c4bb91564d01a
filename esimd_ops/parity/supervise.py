"""Runs the check in a child process and makes a Report of what comes back, whatever becomes of the child.

Imports no torch: what is checked is loaded in the child alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from esimd_ops.trials import child
from esimd_ops.trials.messages import CheckMessage, Observation, OperatorDone, Request
from esimd_ops.trials.runs import TrialRun
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

STEP_S = 300.0  # compiling a kernel from source takes seconds
# A cached graph would hide what this build does.
PROGRAM = child.ChildProgram(
    "esimd_ops.parity.child", CheckMessage, environment={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
)


CheckRun = TrialRun[OperatorDone]


def check(request: Request, step: Callable[[str], None] = lambda _: None, *, step_s: float = STEP_S) -> CheckRun:
    """Run the request to its end."""
    return CheckRun().go(PROGRAM, request, step, step_s)


def report(
    request: Request, outcome: CheckRun, recorded: Iterable[tuple[str, Observation]] = (), *, strict: bool = False
) -> Report:
    """Everything as one Report: an operator asked for and not there is an error, not a clean result.

    recorded  what differs from a record, by operator
    """
    place = Location(f"torch.ops.{request.namespace}")
    errors = list(outcome.errors(place, request.operators))
    findings: list[Finding] = []
    checked: list[Checked] = []

    def tell(op: str, told: Observation) -> None:
        findings.append(Finding(told.code, place, op, told.message, Severity(told.severity)))

    for op in outcome.there.run:
        done = outcome.done.get(op)
        schema = outcome.there.schemas[op]
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
    checked += outcome.unknown(place, request.operators)
    for op, told in recorded:
        tell(op, told)
    refused = {op: done.refused for op, done in outcome.done.items() if done.refused}
    facts: dict[str, object] = {"namespace": request.namespace, "device": request.device, "refused": refused}
    return Report(tuple(checked), tuple(findings), tuple(errors), facts, strict)
