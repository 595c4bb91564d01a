"""The process that a trial runs in, and may die in: both sides of it, the one that starts it and the one that is it.

The request goes in as JSON on standard input; messages come out, one JSON document a line, on a pipe of their own, so
that nothing an operator prints is taken for one. The last line is END: a process that ends without it died of its work,
whatever its exit code says. Imports no torch; knows no operators but their names.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

END = b"end"
KEPT = 1 << 16  # bytes of standard error, the last ones
LOOK_S = 0.2  # how often to see whether a silent process still lives
LEFT_S = 1.0  # for what a dead one left in its pipes; its own children may hold them open for ever
PR_SET_PDEATHSIG = 1

R = TypeVar("R", bound=msgspec.Struct)


class ChildStep(msgspec.Struct, frozen=True, tag="step"):
    """The child is about to do this; what it dies of is this operator's, or nobody's where `op` is empty."""

    op: str
    what: str

    def __str__(self) -> str:
        return f"{self.op} {self.what}".strip()


@dataclass(frozen=True)
class ChildProgram:
    """What to start: `python -m module`, which calls `serve`.

    messages     the type that its messages have, a union of tagged structs; `Step` is understood without being in it
    load_s       seconds it may be silent before its first step with an operator
    step_s       seconds it may be silent from then on
    environment  changes to this process's own; None takes a variable away
    """

    module: str
    messages: Any
    load_s: float = 300.0
    step_s: float = 300.0
    environment: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How a process ended that did not come to its end: in which step, in words, and the traceback that it left."""

    step: ChildStep
    how: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.step.what}: {self.how}" if self.step.what else self.how


def run(
    program: ChildProgram,
    request: Callable[[tuple[str, ...]], msgspec.Struct],
    hear: Callable[[Any], None],
    step: Callable[[str], None] = lambda _: None,
) -> dict[str, Ended]:
    """Run the program to its end, started again without each operator that it dies of: operator -> how it ended there.

    request  what to ask for, given the operators not to run again
    hear     gets each message as it comes, `step` each step in words
    Where the process dies of no operator, or a second time of the same, that ends it: the first under "".
    """
    ends: dict[str, Ended] = {}
    while ended := once(program, request(tuple(ends)), hear, step):
        again = ended.step.op in ends
        ends[ended.step.op] = ended
        if again or not ended.step.op:
            break
    return ends


def once(
    program: ChildProgram,
    request: msgspec.Struct,
    hear: Callable[[Any], None],
    step: Callable[[str], None] = lambda _: None,
) -> Ended | None:
    """Start the program once; None where it came to its end. Whatever is raised meanwhile, the process is gone then."""
    child = _Child(program.module, request, program.environment)
    decoder = msgspec.json.Decoder(program.messages | ChildStep)
    last, finished = ChildStep("", "starting"), False
    child.limit_s = program.load_s
    try:
        for line in child.lines():
            if line == END:
                finished = True
                continue
            try:
                message = decoder.decode(line)
            except msgspec.MsgspecError as error:
                return Ended(last, f"sent what is no message ({error}); the process was stopped")
            if not isinstance(message, ChildStep):
                hear(message)
                continue
            last = message
            child.limit_s = program.step_s if last.op else child.limit_s
            step(str(last))
        how = child.end(finished)
    finally:
        child.stop()
    return Ended(last, how, child.traceback()) if how else None


class _Child:
    """The process with its two pipes. `limit_s`: how long it may be silent."""

    def __init__(self, module: str, request: msgspec.Struct, environment: Mapping[str, str | None]) -> None:
        self.limit_s = 0.0
        self._late = False
        self._errors = b""
        told, tell = os.pipe()
        self._told = os.fdopen(told, "rb", buffering=0)
        changed = {**os.environ, **environment}
        with tempfile.TemporaryFile() as given:  # a pipe could fill, or break
            given.write(msgspec.json.encode(request))
            given.seek(0)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module, str(tell)],
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=(tell,),
                    start_new_session=True,  # ctrl-C reaches the parent, which stops it and all that it started
                    env={name: value for name, value in changed.items() if value is not None},
                )
            finally:
                os.close(tell)

    def lines(self) -> Iterator[bytes]:
        """Whole lines until both pipes are closed, the process is gone, or it is silent for too long."""
        assert self._process.stderr
        begun = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._told, selectors.EVENT_READ)
            selector.register(self._process.stderr, selectors.EVENT_READ)
            patient_until, died = time.monotonic() + self.limit_s, 0.0
            while selector.get_map():
                ready = selector.select(LOOK_S)
                for key, _ in ready:
                    data = os.read(key.fd, KEPT)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._told:
                        *whole, begun = (begun + data).split(b"\n")
                        yield from whole
                        if whole:
                            patient_until = time.monotonic() + self.limit_s
                    else:
                        self._errors = (self._errors + data)[-KEPT:]
                now = time.monotonic()
                if self._process.poll() is not None:
                    died = died or now
                    if not ready or now > died + LEFT_S:
                        return
                elif now > patient_until:
                    self._late = True
                    return

    def end(self, finished: bool) -> str:
        """How it ended, in words; "" where it said its last word and then ended well."""
        if not self._late:
            try:
                self._process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                self._late = True
        if self._late:
            return f"no answer in time ({self.limit_s:g} s); the process was stopped"
        code = self._process.returncode
        if not code:
            return "" if finished else "ended with exit code 0 in the middle of its work"
        said = self._text().splitlines()[-1:]
        how = f"ended by {_signal(-code)}" if code < 0 else f"ended with exit code {code}"
        return ": ".join([how, *said])

    def traceback(self) -> str:
        """What Python wrote of an error that nobody caught, or ""."""
        text = self._text()
        return text if self._process.returncode == 1 and "Traceback (most recent call last)" in text else ""

    def _text(self) -> str:
        return self._errors.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """Kill it and what it started, if it still lives, and close the pipes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stderr
        self._process.stderr.close()
        self._told.close()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def serve(request: type[R], work: Callable[[R, Callable[[msgspec.Struct], None]], None]) -> None:
    """The child's side: read the request, do the work, tell its messages, say END."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a parent that is killed cannot stop it
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    work(
        msgspec.json.decode(sys.stdin.buffer.read(), type=request),
        lambda message: _tell(pipe, msgspec.json.encode(message)),
    )
    _tell(pipe, END)


def _tell(pipe: int, line: bytes) -> None:
    line += b"\n"
    while line:
        line = line[os.write(pipe, line) :]
