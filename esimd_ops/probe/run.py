"""Probes operators, a fresh process for each, and makes a Report of what was seen. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from esimd_ops.trials import child
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

from .question import ProbeAnswer, Question

PROGRAM = child.ChildProgram(
    "esimd_ops.probe.child",
    ProbeAnswer,
    step_s=600.0,  # for all programs of one operator, most of it in compilers
    environment={
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # a cached graph would hide what this build does
        "CI": None,  # there torch refuses some of what it elsewhere lets through, silently wrong
        "PYTHONWARNINGS": "ignore",
    },
)


def probe(
    questions: Iterable[Question], step: Callable[[str], None] = lambda _: None, keep: str | None = None
) -> tuple[Report, dict[str, ProbeAnswer]]:
    """The report, and what was seen of each operator. `keep`: a directory for the graphs that are wrong."""
    checked: list[Checked] = []
    findings: list[Finding] = []
    errors: list[ToolError] = []
    answers: dict[str, ProbeAnswer] = {}
    for question in questions:
        place = Location(f"torch.ops.{question.namespace}")
        step(question.op)
        told: list[ProbeAnswer] = []
        ended = child.once(PROGRAM, question, told.append)
        answer = told[0] if told else ProbeAnswer()
        if ended and ended.traceback:
            errors.append(ToolError(f"{question.op}: the probing process failed:\n{ended.traceback}", place))
        elif ended:
            findings.append(Finding("PB104", place, question.op, str(ended)))
            checked.append(Checked(question.op, place, "", Verdict.WRONG, str(ended)))
        elif answer.failed:
            errors.append(ToolError(f"{question.op}: {answer.failed}", place))
        else:
            answers[question.op] = answer
            found = list(_findings(question.op, place, answer))
            findings += found
            right = sum(seen.outcome == "right" for seen in answer.seen)
            reason = f"{right} of {len(answer.seen)} right"
            checked.append(Checked(question.op, place, answer.schema, _verdict(found), reason))
            if keep:
                _keep(Path(keep), question.op, answer)
    return Report(tuple(checked), tuple(findings), tuple(errors)), answers


def _findings(op: str, place: Location, answer: ProbeAnswer) -> Iterable[Finding]:
    for stage in ("functionalized", "inductor"):
        wrong = [seen for seen in answer.seen if seen.stage == stage and seen.silent]
        if wrong:
            programs = ", ".join(f"{seen.program} ({seen.outcome})" for seen in wrong)
            yield Finding("PB101", place, op, f"{stage}: {programs}: {wrong[0].detail}")
    if answer.no_fake:
        message = "no fake is registered, so torch.compile refuses to trace it; seen with a stand-in"
        yield Finding("PB102", place, op, message, Severity.WARNING)
    refused = [seen for seen in answer.seen if seen.outcome == "refused" and seen.stage != "replay"]
    if refused:
        yield Finding("PB102", place, op, f"{refused[0].program}: {refused[0].detail}", Severity.WARNING)
    for seen in answer.seen:
        if seen.stage == "replay" and (seen.silent or seen.outcome == "refused"):
            yield Finding("PB103", place, op, f"graph replay: {seen.outcome} {seen.detail}".rstrip())


def _verdict(findings: list[Finding]) -> Verdict:
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Verdict.WRONG
    return Verdict.NEEDS_GUARD if findings else Verdict.RIGHT


def _keep(folder: Path, op: str, answer: ProbeAnswer) -> None:
    """The graphs that gave wrong results, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for seen in answer.seen:
        if seen.text:
            suffix = "py" if seen.stage == "inductor" else "txt"
            (folder / f"{op}.{seen.program.replace(' ', '-')}.{seen.stage}.{suffix}").write_text(seen.text)
