"""Runs a program of the toolchain to its end. Ended from outside, it takes that program with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from schema_patch.model import ToolError


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    said: str


def run(argv: Sequence[str], folder: str | None = None) -> Done:
    """Raises ToolError where the program cannot be started."""
    try:
        done = subprocess.run(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as error:
        raise ToolError(f"cannot be started: {error.strerror}", argv[0]) from error
    return Done(done.returncode, done.stdout.decode(errors="replace"))


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code == -signal.SIGKILL or code == 128 + signal.SIGKILL:
        return "was killed, most likely for want of memory (MAX_JOBS sets how many run at once)"
    return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


def shown(argv: Sequence[str]) -> str:
    return shlex.join(os.fspath(word) for word in argv)
