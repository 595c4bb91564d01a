"""The values that all parts of the kit exchange: frozen, without logic of their own. Imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of offsets; of bytes in a file, of characters in a schema text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file; line and column count from 1, column in bytes. Line 0 means the file as a whole."""

    path: str
    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, path: str, data: bytes, offset: int) -> Location:
        """Where a byte of a file stands."""
        start = data.rfind(b"\n", 0, offset) + 1
        return cls(path, data.count(b"\n", 0, offset) + 1, offset - start + 1)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the bytes of `span` in a file by `new`; an empty span inserts."""

    span: Span
    new: bytes


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operator really does: the arguments it writes, in order, and what it returns.

    `returns` is the name of an argument, one of NOT_ARGUMENTS, or "private buffer of N" for a ring of N; "unknown"
    where only the writes are known. One word for all results, or one for each: "out, fresh".
    """

    NOT_ARGUMENTS: ClassVar[frozenset[str]] = frozenset({"nothing", "fresh", "private buffer", "unknown"})

    op: str
    writes: tuple[str, ...]
    returns: str
    evidence: str

    @property
    def results(self) -> tuple[str, ...]:
        """What is said of each result; a single word is said of all."""
        return tuple(part.strip() for part in self.returns.split(","))

    @property
    def returned_argument(self) -> str | None:
        """The argument that every result is."""
        return self.returns if len(self.results) == 1 and is_argument(self.returns) else None


def is_argument(result: str) -> bool:
    """Whether this word of `Effect.returns` names an argument."""
    return result not in Effect.NOT_ARGUMENTS and not buffers_kept(result)


def buffers_kept(result: str) -> int:
    """How many buffers an operator keeps whose result is said to be this; 0 for any other result."""
    kind, _, count = result.partition(" of ")
    if kind != "private buffer":
        return 0
    return int(count or 1) if count.isdecimal() or not count else 0


class Severity(str, Enum):
    """An error makes exit code 1; a warning only with --strict; a note never."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in what we check. Fixable means that it carries its edits."""

    code: str
    location: Location
    op: str
    message: str
    severity: Severity = Severity.ERROR
    edits: tuple[Edit, ...] = ()

    @property
    def fixable(self) -> bool:
        return bool(self.edits)


class Verdict(str, Enum):
    """What can be said of one operator's schema; never mixed with another."""

    RIGHT = "right"
    NEEDS_GUARD = "right, but not compilable without the guard"
    WRONG = "wrong"
    OVER_DECLARED = "over-declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checked:
    """One operator schema that was looked at, and what was found of it."""

    op: str
    location: Location
    schema: str
    verdict: Verdict
    reason: str = ""


class ToolError(Exception):
    """We cannot do the work: what was expected, what was found, where, and what to do."""

    def __init__(self, message: str, where: Location | str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = Location(where) if isinstance(where, str) else where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


@dataclass(frozen=True, slots=True)
class Report:
    """What one run found. True when it is clean: something was checked, nothing is wrong, nothing failed."""

    checked: tuple[Checked, ...] = ()
    findings: tuple[Finding, ...] = ()
    errors: tuple[ToolError, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)
    strict: bool = False
    may_be_empty: bool = False  # nothing to verify is fine: files that a hook passes need not hold operators

    def joined(self, *others: Report) -> Report:
        """With what others found; how findings count stays as it is here."""
        return replace(
            self,
            checked=tuple(row for report in (self, *others) for row in report.checked),
            findings=tuple(finding for report in (self, *others) for finding in report.findings),
            errors=tuple(error for report in (self, *others) for error in report.errors),
        )

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings that count against exit code 0."""
        counting = {Severity.ERROR, Severity.WARNING} if self.strict else {Severity.ERROR}
        return tuple(f for f in self.findings if f.severity in counting)

    def __bool__(self) -> bool:
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings, 2 could not run or nothing verified."""
        verified = any(row.verdict is not Verdict.UNKNOWN for row in self.checked)
        if self.errors or not (verified or self.failed or self.may_be_empty):
            return 2
        return 1 if self.failed else 0
