"""Runs the numeric check of `python -m esimd_ops check` on libraries that were found, each in a process of its own.

Knows how that command is asked and the JSON it answers with; does not know what an operator computes, and loads nothing
itself. Its findings (PA101 ...) are documented where they are made.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from schema_patch.elf.reader import ElfFacts
from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict
from schema_patch.schemas.table import Table

COMMAND = "python -m esimd_ops check"


@dataclass(frozen=True, slots=True)
class Subject:
    """A library on disk, and the operators of the table that it registers under one namespace."""

    path: str
    namespace: str
    ops: tuple[str, ...]


def subjects(libraries: Iterable[ElfFacts], known: Table) -> Iterator[Subject | ToolError]:
    """What can be run of the libraries that hold known operators; where something cannot, why."""
    for library in libraries:
        by_space: dict[str, list[str]] = defaultdict(list)
        for found in library.schemas:
            if found.schema.op in known.entries:
                by_space[found.space].append(found.schema.op)
        if by_space and not Path(library.path).is_file():
            yield ToolError("parity not checked: a member of an archive cannot be run; install it first", library.path)
            continue
        for space, ops in sorted(by_space.items()):
            if space:
                yield Subject(library.path, space, tuple(sorted(set(ops))))
            else:
                how = f"{COMMAND} --namespace NS --library {library.path}"
                yield ToolError(f"parity not checked: its symbols do not tell the namespace; run {how}", library.path)


def run(subject: Subject, device: str, python: str = sys.executable) -> Report:
    """What the check says of one library on `device` ("cpu" or "xpu"), told of the library's file."""
    words = [python, "-m", "esimd_ops", "check", "--namespace", subject.namespace, "--library", subject.path]
    words += ["--ops", ",".join(subject.ops), "--device", device, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        told = msgspec.json.decode(done.stdout)
    except msgspec.DecodeError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        message = f"parity not checked: expected {COMMAND} to run, found: {last}"
        return Report(errors=(ToolError(message, subject.path),))
    return _read(told, subject)


def check(
    libraries: Iterable[ElfFacts], known: Table, device: str, step: Callable[[str], None] = lambda _: None
) -> Iterator[Report]:
    """One report a library and namespace. Nothing to run is an error, not a clean result."""
    found = list(subjects(libraries, known))
    if not found:
        yield Report(errors=(ToolError("parity not checked: expected operators of the table, found none"),))
    for subject in found:
        if isinstance(subject, ToolError):
            yield Report(errors=(subject,))
        else:
            step(f"parity of {subject.path}")
            yield run(subject, device)


def _read(told: dict[str, Any], subject: Subject) -> Report:
    """Rows without a schema, and no findings about schemas: those were judged where the library was read."""
    place = Location(subject.path)
    checked = tuple(
        Checked(row["op"], place, "", Verdict(row["verdict"]), f"parity: {row['reason']}")
        for row in told["checked"]
        if row["verdict"] != Verdict.UNKNOWN.value
    )
    findings = tuple(
        Finding(row["code"], place, row["op"], row["message"], Severity(row["severity"]))
        for row in told["findings"]
        if row["code"].startswith("PA")
    )
    errors = tuple(ToolError(f"parity not checked: {row['message']}", place) for row in told["errors"])
    return Report(checked, findings, errors)
