"""Which findings a project has accepted: comments in its sources, and a baseline file. Pure; reads no disk.

A comment stands on the line of the finding, or above the call that the finding is in, in C++ or Python:

    // schema-patch: ignore[SP101] the reason
    m.def(
        "op(Tensor out) -> ()");

A baseline lists findings by code, operator, file and argument, not by line, so that code above them may move.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from schema_patch.model import Finding, Location, Severity, ToolError

COMMENT = re.compile(rb"(?://|#|/\*)\s*schema-patch:\s*ignore(?:\[([^\]\n]*)\])?[ \t]*([^\n]*)")
CODES = re.compile(r"[A-Z]{2}\d{3}")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment. `last` is the last line of which it speaks."""

    location: Location
    codes: frozenset[str]
    reason: str
    last: int


def read(path: str, data: bytes) -> list[Suppression]:
    """The suppressions of one file."""
    found = []
    lines = data.splitlines() if COMMENT.search(data) else []
    for match in COMMENT.finditer(data):
        where = Location.at(path, data, match.start())
        reason = match[2].decode("utf-8", "replace").removesuffix("*/").strip()
        codes = frozenset(CODES.findall((match[1] or b"").decode("utf-8", "replace")))
        found.append(Suppression(where, codes, reason, _last(lines, where.line)))
    return found


def _last(lines: list[bytes], line: int) -> int:
    """The line to which a comment reaches: the first that is none, and the next one where that opens a call."""
    while line < len(lines) and (not (text := lines[line].strip()) or text.startswith((b"//", b"#", b"/*"))):
        line += 1
    while line < len(lines) and lines[line].rstrip().endswith(b"("):
        line += 1
    return line + 1


def apply(findings: Iterable[Finding], files: Mapping[str, bytes]) -> tuple[list[Finding], int]:
    """The findings that no comment suppresses, with those about the comments; and how many were suppressed."""
    comments = [comment for path, data in files.items() for comment in read(path, data)]
    by_place: dict[tuple[str, int], list[Suppression]] = {}
    for comment in comments:
        for line in range(comment.location.line, comment.last + 1):
            by_place.setdefault((comment.location.path, line), []).append(comment)
    used: set[Suppression] = set()
    kept: list[Finding] = []
    suppressed = 0
    for finding in findings:
        here = by_place.get((finding.location.path, finding.location.line), ())
        mine = [comment for comment in here if finding.code in comment.codes]
        used.update(mine)
        if mine:
            suppressed += 1
        else:
            kept.append(finding)
    for comment in comments:
        if comment not in used:
            message = (
                f"suppresses nothing: no finding {' or '.join(sorted(comment.codes)) or 'of a code it names'} here"
            )
            kept.append(Finding("SP109", comment.location, "", message, Severity.WARNING))
        elif not comment.reason:
            kept.append(Finding("SP109", comment.location, "", "a suppression without a reason", Severity.WARNING))
    return kept, suppressed


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """One accepted finding. `path` is relative to the baseline file; `subject` is what the message quotes."""

    code: str
    op: str
    path: str
    subject: str


class _Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    findings: tuple[Accepted, ...]


def entry(finding: Finding, folder: str) -> Accepted:
    """A finding as a baseline keeps it; `folder` is the one that the baseline stands in."""
    path = os.path.relpath(finding.location.path, folder or ".").replace(os.sep, "/")
    named = re.findall(r"'(\w+)'", finding.message.split(" at ")[0].split(": ")[0])
    return Accepted(finding.code, finding.op, path, " ".join(sorted(set(named))))


def write(findings: Iterable[Finding], path: str) -> bytes:
    """The bytes of a baseline that accepts these findings."""
    entries = tuple(sorted(entry(finding, os.path.dirname(path)) for finding in findings))
    return msgspec.json.format(msgspec.json.encode(_Baseline(1, entries)), indent=2) + b"\n"


def new(findings: Iterable[Finding], data: bytes, path: str) -> tuple[list[Finding], list[Accepted]]:
    """The findings that the baseline does not accept, and its entries that are found no more. Raises ToolError."""
    try:
        known = msgspec.json.decode(data, type=_Baseline)
    except msgspec.MsgspecError as error:
        raise ToolError(f"expected a baseline as --write-baseline makes it: {error}", path) from error
    if known.version != 1:
        raise ToolError(f"expected a baseline of version 1, found {known.version}: write it anew", path)
    left = Counter(known.findings)
    kept = []
    for finding in findings:
        key = entry(finding, os.path.dirname(path))
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(finding)
    return kept, sorted(left.elements())
