"""Runs the check in a child process and makes a Report of what comes back, whatever becomes of the child.

Imports no torch: what is checked is loaded in the child alone.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from esimd_ops.trials.messages import At, Done, Found, Message, Request, Told
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

LOAD_S = 300.0  # for loading everything
ANSWER_S = 300.0  # for one step; compiling a kernel from source takes seconds


@dataclass
class Outcome:
    """All that is known so far."""

    schemas: dict[str, str] = field(default_factory=dict)
    run: tuple[str, ...] = ()
    done: dict[str, Done] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)  # operator -> how the process ended in it
    failed: str = ""


def check(request: Request, step: Callable[[str], None] = lambda _: None, *, answer_s: float = ANSWER_S) -> Outcome:
    """Run the request to its end. A child that dies is started again without the operator that it died of.

    Raises ToolError where the check itself goes wrong.
    """
    outcome = Outcome()
    while True:
        skip = (*outcome.done, *outcome.ends)
        last = At("", "starting")
        child = _Child(replace_skip(request, skip))
        for message in child.messages(answer_s):
            if isinstance(message, At):
                last = message
                step(f"{message.op} {message.step}".strip())
            elif isinstance(message, Found):
                outcome.schemas, outcome.run = message.schemas, message.run
            elif isinstance(message, Done):
                outcome.done[message.op] = message
            else:
                outcome.failed = message.message
        end = child.end()
        if outcome.failed or not end:
            return outcome
        outcome.ends[last.op] = f"{last.step}: {end}"
        if not last.op:  # died while loading or at its very end: again would be the same
            return outcome


def replace_skip(request: Request, skip: tuple[str, ...]) -> Request:
    return msgspec.structs.replace(request, skip=skip)


class _Child:
    def __init__(self, request: Request) -> None:
        read, write = os.pipe()
        self._read = read
        self._late = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        # A cached graph would hide what this build does.
        environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "esimd_ops.parity.child", str(write)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(write,),
            env=environment,
        )
        os.close(write)
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(request))
        self._process.stdin.close()

    def messages(self, answer_s: float) -> Iterator[Message]:
        """Until the child closes its end, or is silent for too long and is killed."""
        decoder = msgspec.json.Decoder(Message)
        pending, patience = b"", LOAD_S
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._read, selectors.EVENT_READ)
                while True:
                    if not selector.select(patience):
                        self._late = True
                        return
                    data = os.read(self._read, 65536)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        message = decoder.decode(line)
                        patience = answer_s if isinstance(message, Found) else patience
                        yield message
        finally:
            os.close(self._read)
            if self._late or sys.exc_info()[0] is not None:
                self._process.kill()

    def end(self) -> str:
        """How the process ended, in words; empty where all is well. Raises ToolError for an error of our own."""
        code = self._process.wait()
        self._errors.seek(0)
        errors = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.close()
        if self._late:
            return "no answer in time; the process was stopped"
        if code < 0:
            return f"ended by {_signal(-code)}"
        if code == 1 and "Traceback (most recent call last)" in errors:
            raise ToolError(f"the checking process failed:\n{errors}")
        return f"ended with exit code {code}" if code else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def report(request: Request, outcome: Outcome, recorded: tuple[Told, ...] = (), *, strict: bool = False) -> Report:
    """Everything as one Report: an operator asked for and not there is an error, not a clean result."""
    place = Location(f"torch.ops.{request.namespace}")
    errors = [ToolError(outcome.failed, place)] if outcome.failed else []
    findings: list[Finding] = []
    checked: list[Checked] = []

    def tell(op: str, told: Told) -> None:
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
            checked.append(Checked(op, place, schema, Verdict.WRONG, outcome.ends[op]))
    for op, end in outcome.ends.items():
        tell(op, Told("PA112", f"{end}"))
    checked += [
        Checked(op, place, schema, Verdict.UNKNOWN, "not in the operator table")
        for op, schema in outcome.schemas.items()
        if op not in outcome.run and not request.operators
    ]
    if outcome.schemas or not errors:
        absent = [op for op in request.operators if op not in outcome.run]
        errors += [ToolError(f"{op} is not registered, or with other arguments", place) for op in absent]
    for told in recorded:
        op, _, message = told.message.partition(": ")
        tell(op, Told(told.code, message, told.severity))
    refused = {op: done.refused for op, done in outcome.done.items() if done.refused}
    facts: dict[str, object] = {"namespace": request.namespace, "device": request.device, "refused": refused}
    return Report(tuple(checked), tuple(findings), tuple(errors), facts, strict)
