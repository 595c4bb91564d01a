"""Runs one command with its output in a log, and shows a line: what is being done and how long it has taken.

    step.py LOG "what is done" COMMAND...

For a Makefile, before anything is installed: it knows the standard library alone. Exit code: the command's own.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TOLD = 15  # lines of the log that are shown where a command fails


def run(log: Path, title: str, words: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """The command's exit code. What it printed is the end of the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    done = threading.Event()
    clock = threading.Thread(target=_tick, args=(title, began, done), daemon=True)
    clock.start()
    with log.open("ab") as into:
        into.write(f"\n$ {' '.join(words)}\n".encode())
        into.flush()
        start = into.tell()
        code = subprocess.run(words, stdout=into, stderr=subprocess.STDOUT, env=env, check=False).returncode
    done.set()
    clock.join()
    print(_line(title, began), flush=True)
    if code:
        lines = log.read_bytes()[start:].decode("utf-8", "replace").splitlines()
        print(*lines[-TOLD:], sep="\n", file=sys.stderr)
        print(f"{title}: failed with exit code {code}; the whole output is in {log}", file=sys.stderr)
    return code


def _tick(title: str, began: float, done: threading.Event) -> None:
    while sys.stdout.isatty() and not done.wait(0.5):
        print(_line(title, began), end="\r", flush=True)


def _line(title: str, began: float) -> str:
    return f"  {title:<64}{time.monotonic() - began:>6.0f} s"


if __name__ == "__main__":
    raise SystemExit(run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
