"""Runs a program of the toolchain to its end. Ended from outside, it takes that program with it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from schema_patch.model import ToolError


@dataclass(frozen=True, slots=True)
class Voice:
    """What is told while the work goes on: prose, and how many steps of how many are done."""

    say: Callable[[str], None]
    step: Callable[[int, int], None]


scratch = partial(tempfile.TemporaryDirectory, prefix="schema-patch-")  # a folder for what is made on the way
CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)

_running: set[subprocess.Popen[bytes]] = set()
_running_lock = threading.Lock()
_ending = threading.Event()


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    said: str


def run(argv: Sequence[str], folder: str | None = None, output: str | None = None) -> Done:
    """Raises ToolError where the program cannot be started. `output`: a file for what it prints; errors are said."""
    try:
        with open(output or os.devnull, "wb") as file:
            process = subprocess.Popen(
                argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=file if output else subprocess.PIPE,
                stderr=subprocess.PIPE if output else subprocess.STDOUT,
            )  # fmt: skip
    except OSError as error:
        raise ToolError(f"cannot be started: {error.strerror}", argv[0]) from error
    with _running_lock:
        _running.add(process)
        if _ending.is_set():  # while this one was being started
            process.kill()
    try:
        with process:
            said = b"".join(filter(None, process.communicate()))
    finally:
        process.kill()
        with _running_lock:
            _running.discard(process)
    return Done(process.returncode, said.decode(errors="replace"))


def end_all() -> None:
    """Ends what other threads have started or are about to, so that they come to their ends too."""
    with _running_lock:
        _ending.set()
        for process in _running:
            process.kill()


def crashed(code: int) -> bool:
    """A program broke off by itself: nobody ended it, and it has not said no. A shell that ran it adds 128."""
    return -code in CRASHES or code - 128 in CRASHES


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code == -signal.SIGKILL or code == 128 + signal.SIGKILL:
        return "was killed, most likely for want of memory (MAX_JOBS sets how many run at once)"
    return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"
