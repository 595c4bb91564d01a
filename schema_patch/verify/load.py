"""The same question to torch: what does its registry hold once a library is loaded, and is that what was read of it?

Loads each library in a process of its own, of the interpreter that it is installed for; that process may crash, hang or
call exit. Knows no operator. Code:
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from schema_patch.elf.reader import ElfFacts, FoundSchema, Named
from schema_patch.model import Finding, Location, ToolError
from schema_patch.schemas.grammar import SchemaError, parse

PATIENCE = 300  # seconds for one library
SITE = re.compile(r"(?P<prefix>.*)/lib(64)?/python(?P<version>3\.\d+)/(site|dist)-packages/")
INFERRED = re.compile(r"_\d+")  # how torch calls the arguments of a schema that it infers
# Imports torch once and forks for each library, since two may register one namespace. Answers in a file, a line each:
# libraries print what they like.
CHILD = r"""
import json, os, signal, sys, time
answers, patience = sys.argv[1], float(sys.argv[2])
import torch
def text_of(row):
    try:
        return str(torch._C.parse_schema(row))
    except RuntimeError as error:
        return "error: " + str(error)[:200]
def answer(row):
    with open(answers, "a") as file:
        file.write(json.dumps(row) + "\n")
def load(path):
    path = os.path.abspath(path)  # a name alone would be looked for elsewhere
    library = torch.ops.load_library(path)
    name = os.path.basename(path).lstrip(".").split(".")[0]
    import ctypes
    if hasattr(ctypes.CDLL(path), "PyInit_" + name):
        import importlib.machinery, importlib.util
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        loader.create_module(importlib.util.spec_from_loader(name, loader))
before = {str(s) for s in torch._C._jit_get_all_schemas()}
for path, texts in json.load(sys.stdin):
    pid = os.fork()
    if not pid:
        error = ""
        try:
            load(path)
        except (OSError, RuntimeError, ImportError) as found:
            error = str(found.__cause__ or found)[:500]
        new = sorted({str(s) for s in torch._C._jit_get_all_schemas()} - before)
        answer({"path": path, "registered": new, "parsed": [text_of(row) for row in texts], "error": error})
        os._exit(0)
    end = time.monotonic() + patience
    status = None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else time.sleep(0.02)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    answer({"path": path, "status": status})
"""


class _Answer(msgspec.Struct):
    path: str
    registered: list[str] | None = None
    parsed: list[str] = []
    error: str = ""
    status: int | None = -1


@dataclass(slots=True)
class Loaded:
    """What torch said of one library; `facts`: with what torch registers in the place of what was not read."""

    facts: ElfFacts
    findings: list[Finding] = field(default_factory=list)
    errors: list[ToolError] = field(default_factory=list)


def interpreter(path: str) -> str:
    """The interpreter whose site-packages a library is in; this one, for a library elsewhere."""
    match = SITE.match(os.path.abspath(path))
    if match:
        for name in (f"python{match['version']}", "python3", "python"):
            found = os.path.join(match["prefix"], "bin", name)
            if os.access(found, os.X_OK):
                return found
    return sys.executable


def ask(
    libraries: Sequence[ElfFacts], step: Callable[[str], None] = lambda _: None, patience: float = PATIENCE
) -> Iterator[Loaded]:
    """Loads what registers operators and holds torch's registry against it, in the order of the libraries."""
    groups: dict[str, list[ElfFacts]] = {}
    for facts in libraries:
        groups.setdefault(interpreter(facts.path) if facts.registers else "", []).append(facts)
    told: dict[str, Loaded] = {}
    for python, group in groups.items():
        if not python:
            told |= {facts.path: Loaded(facts) for facts in group}
            continue
        for facts in group:
            step(f"loading {facts.path}")
        answers, trouble = _run(python, group, patience)
        all_ = {text for rows in answers.values() for answer in rows for text in answer.parsed}
        told |= {facts.path: _held(facts, answers.get(facts.path, []), trouble, all_) for facts in group}
    for facts in libraries:
        yield told[facts.path]


def _run(python: str, group: Sequence[ElfFacts], patience: float) -> tuple[dict[str, list[_Answer]], str]:
    """What the child answered of each library, and why it answered no more."""
    wanted = [(facts.path, [_full(found) for found in facts.schemas]) for facts in group if os.path.isfile(facts.path)]
    with tempfile.NamedTemporaryFile("r", prefix="schema-patch-") as file:
        command = [python, "-c", CHILD, file.name, str(patience)]
        try:
            done = subprocess.run(
                command, input=msgspec.json.encode(wanted), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                timeout=(patience + 60) * (1 + len(wanted)), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {}, f"{python} did not answer"
        except OSError as error:
            return {}, f"{python} cannot be run: {error.strerror}"
        answers: dict[str, list[_Answer]] = {}
        for line in file.read().splitlines():
            answer = msgspec.json.decode(line, type=_Answer)
            answers.setdefault(answer.path, []).append(answer)
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return answers, f"{python}: {last[0] if last else f'exit code {done.returncode}'}"


def _held(facts: ElfFacts, answers: Sequence[_Answer], trouble: str, all_: Collection[str]) -> Loaded:
    """`all_`: what was read of all libraries, for one brings along what others register that it needs."""
    told = next((answer for answer in answers if answer.registered is not None), None)
    status = next((answer.status for answer in answers if answer.registered is None), -1)
    if not os.path.isfile(facts.path):
        return _failed(facts, "it lies in an archive: install it, and load that")
    if told is None or told.registered is None:
        return _failed(facts, _ending(status) if answers else trouble)
    if told.error:
        return _failed(facts, told.error)
    mine = {_name(text) for text in told.parsed}
    registered = [row for row in told.registered if row not in all_ or _name(row) in mine]
    return _compared(facts, registered, told.parsed)


def _ending(status: int | None) -> str:
    if status is None:
        return "it did not come back in time"
    if os.WIFSIGNALED(status):
        return f"the process ended by signal {os.WTERMSIG(status)}"
    return f"it ended the process with exit code {os.waitstatus_to_exitcode(status)}"


def _failed(facts: ElfFacts, why: str) -> Loaded:
    return Loaded(facts, errors=[ToolError(f"expected torch to load it, which failed: {why}", facts.path)])


def _compared(facts: ElfFacts, registered: Sequence[str], parsed: Sequence[str]) -> Loaded:
    """What was read and is not registered, and the other way round. Where something was not read, torch tells."""
    loaded = Loaded(facts)
    where = Location(facts.path)
    read = dict(zip(parsed, facts.schemas, strict=True))
    named = {f"{found.namespace}::{found.name}" for found in facts.named}
    left = list(registered)  # what no text that was read stands for: each stands for one
    for text, found in sorted(read.items(), key=lambda row: "::" not in _name(row[0])):
        row = next((row for row in left if text in _forms(row)), None)
        if row is None and not any(text in _forms(row) for row in registered):
            row = next((row for row in (*left, *registered) if _name(text) in _forms(_name(row))), None)
            message = f"read of it: {found.line}; torch registers {row or 'nothing of that name'}"
            loaded.findings.append(Finding("SP215", where, found.schema.op, message))
        if row in left:
            left.remove(row)
    unread = [row for row in left if _name(row) not in named]
    if unread and not facts.unread:
        for row in unread:
            message = f"torch registers what was not read of it: {row}"
            loaded.findings.append(Finding("SP215", where, _name(row).rpartition("::")[2], message))
    schemas, inferred = list(facts.schemas), list(facts.named)
    for row in unread:
        space, _, op = _name(row).rpartition("::")
        try:
            schema = parse(row)
            if schema.args and all(INFERRED.fullmatch(arg.name) for arg in schema.args):
                inferred.append(Named(op, space))
            else:
                schemas.append(FoundSchema(row, schema, space))
        except SchemaError as error:
            loaded.errors.append(
                ToolError(f"expected a schema in torch's registry, found {row!r}: {error}", facts.path)
            )
    loaded.facts = replace(facts, schemas=tuple(schemas), named=tuple(inferred), unread=())
    return loaded


def _name(text: str) -> str:
    return text.partition("(")[0].strip()


def _forms(text: str) -> tuple[str, str]:
    """A text, and the same in a namespace that is not known."""
    return text, text.partition("::")[2]


def _full(found: FoundSchema) -> str:
    text = found.text.strip()
    return text if found.schema.namespace or not found.namespace else f"{found.namespace}::{text}"
