"""ElfFacts + operator table + runtime policy -> Report. `check` is pure; `verify` finds and reads the files for it.

Knows what an installed library must say. Does not know the ELF format, nor how a package is stored. Codes, beside those
of rules.py:

    SP201  runtime mismatch: the library needs another major version of libsycl.so than the policy expects
    SP202  a required operator is in no library
    SP203  a required operator is there, but cannot be called right
    SP204  two libraries hold different schemas of one operator that the table knows (warning)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

import msgspec

from . import elf, packages
from .elf import ElfFacts, FoundSchema
from .model import Checked, Effect, Finding, Location, Report, Severity, ToolError, Verdict
from .rules import Judgement, judge
from .schema import TYPES, Type
from .table import Table, load

GOOD = frozenset({Verdict.RIGHT, Verdict.NEEDS_GUARD})
SYCL = re.compile(r"libsycl(?:-preview)?\.so(?:\.(?P<major>\d+))?")


class Sycl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The SYCL runtime that libraries must link."""

    major: str
    why: str


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions that a look through site-packages leaves out; names may hold `*`."""

    why: str
    names: tuple[str, ...]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policies/runtime.toml."""

    sycl: Sycl
    platform: tuple[Platform, ...] = ()

    def passes_over(self, distribution: str) -> str | None:
        """Why a distribution is left out, if it is."""
        for group in self.platform:
            if any(fnmatchcase(distribution, name) for name in group.names):
                return group.why
        return None


@cache
def policy() -> Policy:
    """The runtime policy that ships with the kit. Raises ToolError where it is misspelt."""
    file = resources.files(__package__) / "policies" / "runtime.toml"
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Policy)
    except msgspec.MsgspecError as error:
        raise ToolError(f"not a runtime policy: {error}", str(file)) from error


def verify(
    paths: Iterable[str],
    *,
    require: Sequence[str] = (),
    sycl: str | None = None,
    include_all: bool = False,
    table: Table | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Reads every library under the paths and judges it; `progress` hears each path before it is read.

    `require`: operators that must be present and declare what they write. `sycl`: the expected major version of
    libsycl.so, if not the policy's. `include_all`: look into the platform's own distributions too. What cannot be read
    is in the report's `errors`; the rest is judged all the same.
    """
    paths = list(paths)
    facts: dict[str, ElfFacts] = {}
    owners: dict[str, str] = {}
    skipped: dict[tuple[str, str], int] = {}
    errors: list[ToolError] = []

    def skip(what: str, why: str) -> None:
        skipped[what, why] = skipped.get((what, why), 0) + 1

    for path in paths:
        try:
            found = packages.find(path)
        except ToolError as error:
            errors.append(error)
            continue
        errors += found.errors
        for what, why in found.skipped:
            skip(what, why)
        for library in found.libraries:
            owner = library.owner
            why_not = policy().passes_over(owner.name) if owner and not library.named and not include_all else None
            if owner and why_not:
                skip(str(owner), why_not)
                continue
            if library.path in facts:
                continue
            if progress:
                progress(library.path)
            try:
                with packages.local(library) as file:
                    facts[library.path] = elf.read(file, library.path)
            except elf.ForeignElf as error:  # packages bring helpers for other machines; torch cannot load those
                if library.named:
                    errors.append(error)
                else:
                    skip(library.path, error.message)
            except ToolError as error:
                errors.append(error)
            else:
                owners[library.path] = str(owner) if owner else ""

    major = sycl or policy().sycl.major
    report = check(facts.values(), table or load(), require=require, sycl=major, where=" ".join(paths))
    return replace(report, errors=tuple(errors), facts=_facts(list(facts.values()), owners, skipped))


@dataclass(frozen=True, slots=True)
class _Row:
    """One schema in one library, judged."""

    library: str
    found: FoundSchema
    effect: Effect | None
    judgement: Judgement

    @property
    def op(self) -> str:
        return self.found.schema.op

    @property
    def where(self) -> Location:
        return Location(self.library)


def check(
    libraries: Iterable[ElfFacts], table: Table, *, require: Sequence[str] = (), sycl: str, where: str = ""
) -> Report:
    """Judges what libraries say of themselves; `where` names them all together. Pure."""
    libraries = list(libraries)
    rows = [_judged(library.path, found, table) for library in libraries for found in library.schemas]
    findings = [finding for library in libraries for finding in _runtime(library, sycl)]
    findings += [
        Finding(row.judgement.code, row.where, row.op, _message(row), row.judgement.severity)
        for row in rows
        if row.judgement.code
    ]
    findings += _contradictions(rows)
    if libraries:
        findings += [finding for name in require for finding in _required(name, rows, len(libraries), where)]
    checked = tuple(
        Checked(row.op, row.where, row.found.text, row.judgement.verdict, row.judgement.reason) for row in rows
    )
    return Report(checked, tuple(findings))


def sycl_major(library: ElfFacts) -> str | None:
    """The major version of libsycl.so that a library needs: None where it needs none, empty where it names none."""
    for needed in library.needed:
        match = SYCL.fullmatch(needed)
        if match:
            return match["major"] or ""
    return None


def _judged(library: str, found: FoundSchema, table: Table) -> _Row:
    effect = table.effect(found.schema)
    judgement = judge(found.schema, effect)
    if judgement.verdict in GOOD:
        # The grammar takes any word in lower case for a type variable; torch takes none from an operator library.
        for arg in (*found.schema.args, *found.schema.returns):
            odd = [base for base in _bases(arg.type) if base not in TYPES and not base.startswith("__torch__")]
            if odd:
                what = f"argument '{arg.name}'" if arg in found.schema.args else "the return"
                judgement = Judgement(Verdict.UNKNOWN, reason=f"{what} has no type of torch: '{odd[0]}'")
    return _Row(library, found, effect, judgement)


def _bases(kind: Type) -> Iterator[str]:
    if kind.base:
        yield kind.base
    for inner in kind.inner:
        yield from _bases(inner)


def _message(row: _Row) -> str:
    return f"{row.judgement.reason}: {' '.join(row.found.text.split())}"


def _runtime(library: ElfFacts, expected: str) -> Iterator[Finding]:
    major = sycl_major(library)
    if major is not None and major != expected:
        found = f"libsycl.so.{major}" if major else "libsycl.so without a version"
        message = f"expected to need libsycl.so.{expected}, needs {found}; build it with the toolchain of its torch"
        yield Finding("SP201", Location(library.path), "", message)


def _contradictions(rows: Sequence[_Row]) -> Iterator[Finding]:
    """A stale copy beside a new one: which of them registers depends on what is loaded first."""
    first: dict[tuple[str, str | None], _Row] = {}
    for row in rows:
        if row.effect is None:
            continue
        other = first.setdefault((row.op, row.found.schema.namespace), row)
        if other.found.schema != row.found.schema:
            text = " ".join(other.found.text.split())
            message = f"two schemas of one operator: the other, in {other.library}, is {text}"
            yield Finding("SP204", row.where, row.op, message, Severity.WARNING)


def _required(name: str, rows: Sequence[_Row], libraries: int, where: str) -> Iterator[Finding]:
    namespace, _, op = name.rpartition("::")
    spaces = (None, namespace) if namespace else {row.found.schema.namespace for row in rows}
    copies = [row for row in rows if row.op == op and row.found.schema.namespace in spaces]
    for row in copies:
        verdict = row.judgement.verdict
        if verdict not in GOOD:
            yield Finding("SP203", row.where, op, f"required to be right, is {verdict.value}: {_message(row)}")
    if not copies:
        message = f"required, but in none of the {libraries} libraries read"
        near = difflib.get_close_matches(op, {row.op for row in rows}, 1)
        if any(row.op.endswith(op) for row in rows):
            message += "; a longer name ends so, and linkers merge tails of strings: it cannot be told from the file"
        elif near:
            message += f"; did you mean {near[0]}?"
        yield Finding("SP202", Location(where), op, message)


def _facts(
    libraries: Sequence[ElfFacts], owners: dict[str, str], skipped: dict[tuple[str, str], int]
) -> dict[str, object]:
    """For the report: the libraries that have a say, how many others were read, and what was left out and why."""
    speaking = [library for library in libraries if library.schemas or sycl_major(library) is not None]
    return {
        "libraries": [
            {
                "path": library.path,
                "owner": owners[library.path],
                "machine": library.machine,
                "size": library.size,
                "stripped": library.stripped,
                "needed": list(library.needed),
                "runpath": library.runpath,
                "sycl": sycl_major(library),
                "schemas": len(library.schemas),
            }
            for library in speaking
        ],
        "others_read": len(libraries) - len(speaking),
        "skipped": [{"what": what, "files": files, "why": why} for (what, why), files in skipped.items()],
    }
