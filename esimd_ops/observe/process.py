"""Observing a whole process, as the environment asks, and running a program that way. Prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from esimd_ops import environment
from schema_patch.model import ToolError

from . import record
from .record import SeenRecord
from .schedule import EVERY, FIRST

_started: list[object] = []


class Options(msgspec.Struct, frozen=True):
    """How to observe, for another process. `save`: a folder for the calls; "" for none."""

    namespace: tuple[str, ...] = ()
    first: int = FIRST
    every: int = EVERY
    budget: float | None = None
    save: str = ""

    def words(self) -> str:
        """As SCHEMA_KIT_OBSERVE_OPTIONS has them."""
        found = {"namespace": ",".join(self.namespace), "first": self.first, "every": self.every, "budget": self.budget}
        found["save"] = self.save.replace(" ", "%20")
        return " ".join(f"{name}={value}" for name, value in found.items() if value not in ("", None))

    @classmethod
    def of(cls, words: str) -> Options:
        """Raises ToolError for a word that is none."""
        found: dict[str, object] = {}
        for word in words.split():
            name, _, value = word.partition("=")
            found[name] = value.split(",") if name == "namespace" else value.replace("%20", " ")
        if strange := sorted(found.keys() - set(cls.__struct_fields__)):
            expected = ", ".join(f"{name}=" for name in cls.__struct_fields__)
            raise ToolError(f"{environment.OBSERVE_OPTIONS}: expected {expected}, found '{strange[0]}'")
        try:
            return msgspec.convert(found, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ToolError(f"{environment.OBSERVE_OPTIONS}: {error}") from error


def start() -> None:
    """Observes from now on as the environment asks. Does nothing a second time, nor in a process that compiles."""
    if _started or environment.is_compile_worker():
        return
    from .saved import Folder
    from .schedule import Schedule
    from .session import Session

    options = Options.of(environment.observe_options())
    save = Folder(Path(options.save)).save if options.save else None
    session = Session(options.namespace, Schedule(options.first, options.every, options.budget), save)
    session.keep_in(Path(environment.observed_into()))
    session.start()
    _started.append(session)


def run(program: Sequence[str], options: Options, out: IO[str] | None = None) -> tuple[SeenRecord, int]:
    """Runs `script.py ARGS` or `-m module ARGS`; what it and its children were seen to do, and its exit code.

    out: where what it prints goes, if not where it would.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        changed = {environment.OBSERVE: str(path), environment.OBSERVE_OPTIONS: options.words()}
        command = [sys.executable, "-m", f"{__package__}.child", *program]
        ended = subprocess.run(command, env={**os.environ, **changed}, stdout=out, check=False)
        found = record.collect(record.parts_of(path))
    if found is None:
        raise ToolError(f"the program ended with exit code {ended.returncode} before anything could be observed")
    return found, ended.returncode
