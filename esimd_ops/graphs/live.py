"""Watches how operators are called in this process, and keeps a record of it on disk for `esimd_ops graphs --live`.

Python reaches an operator through `OpOverload` or `OpOverloadPacket`; both are made to look at who calls. Only the
first calls of an operator are looked at, since walking the stack costs microseconds; later ones cost a dictionary
lookup. Calls from C++ are not seen.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import torch
from torch._ops import OpOverload, OpOverloadPacket

from esimd_ops.guard.decide import TWINS, operator_of

VARIABLE = "SCHEMA_KIT_GRAPHS"
LOOKED_AT = 64  # calls of each operator
PASSED_OVER = (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class CallSeen(msgspec.Struct):
    """One way in which an operator was called: how often among the first calls, and a place that called it."""

    calls: int
    place: str


class ProcessRecord(msgspec.Struct):
    """What one process has seen. `operators`: namespace::name -> state -> Seen."""

    pid: int
    command: str
    started: float
    operators: dict[str, dict[str, CallSeen]]


def folder() -> Path:
    """Where processes leave their records: the directory that SCHEMA_KIT_GRAPHS names, or one in the user's cache."""
    given = os.environ.get(VARIABLE, "")
    if os.sep in given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~"), ".cache")) / "schema-kit" / "graphs"


def read(where: Path) -> list[ProcessRecord]:
    """The records in a folder, oldest process first; what is being written is passed over."""
    records = [msgspec.json.decode(path.read_bytes(), type=ProcessRecord) for path in where.glob("*.json")]
    return sorted(records, key=lambda record: record.started)


def start_if_asked(namespaces: Iterable[str]) -> None:
    """Begins a record where the environment variable asks for one. Called by the vLLM plugin in every process."""
    if os.environ.get(VARIABLE):
        Recorder(namespaces, folder()).start()


class Recorder:
    """Looks at the calls of the operators of some namespaces, from `start` on."""

    def __init__(self, namespaces: Iterable[str], where: Path) -> None:
        self.namespaces = frozenset(namespaces) | {TWINS}
        self.path = where / f"{os.getpid()}.json"
        self.record = ProcessRecord(os.getpid(), " ".join(sys.argv), time.time(), {})
        self._left: dict[Any, int] = {}  # by operator: how many of its calls are still looked at; 0 for those of others
        self._lock = threading.RLock()

    def start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write()
        for kind in (OpOverload, OpOverloadPacket):
            kind.__call__ = self._looking(kind.__call__)  # type: ignore[method-assign]

    def _looking(self, original: Any) -> Any:
        left = self._left

        def __call__(op: Any, /, *args: Any, **kwargs: Any) -> Any:
            if left.get(op, 1):
                self._look(op)
            return original(op, *args, **kwargs)

        return __call__

    def _look(self, op: Any) -> None:
        name = str(op).removesuffix(".default").replace(".", "::", 1)
        if name.partition("::")[0] not in self.namespaces:
            self._left[op] = 0
            return
        name = operator_of(name) if name.startswith(f"{TWINS}::") else name
        state, place = _caller(sys._getframe(2))
        with self._lock:
            self._left[op] = self._left.get(op, LOOKED_AT) - 1
            states = self.record.operators.setdefault(name, {})
            if state in states:
                states[state].calls += 1
            else:
                states[state] = CallSeen(1, place)
                self._write()

    def _write(self) -> None:
        """Whole or not at all: another process reads it."""
        with tempfile.NamedTemporaryFile(dir=self.path.parent, delete=False) as file:
            file.write(msgspec.json.encode(self.record))
        os.replace(file.name, self.path)


def _caller(frame: FrameType | None) -> tuple[str, str]:
    """How the operator is called, and from where."""
    if torch._guards.TracingContext.try_get() is not None:
        return "traced", "torch.compile"
    place = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if _compiled(frame):
            return ("opaque", place) if place else ("traced", file)
        if not place and not file.startswith(PASSED_OVER):
            place = f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "eager", place


def _compiled(frame: FrameType) -> bool:
    """Code that Inductor or torch.fx has generated."""
    return frame.f_code.co_filename.startswith("<eval_with_key>") or "AsyncCompile" in frame.f_globals
