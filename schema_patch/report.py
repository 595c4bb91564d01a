"""Report -> text or JSON. Returns strings; prints nothing, reads nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from .model import Checked, Finding, Report, Severity, ToolError, Verdict

VERSION = 1


def text(report: Report) -> str:
    """One line a finding, the way compilers print them, and a summary."""
    lines = [finding_line(finding) for finding in report.findings]
    return "\n".join([*lines, summary(report)])


def finding_line(finding: Finding) -> str:
    op = f" {finding.op}:" if finding.op else ""
    return f"{finding.location}: {finding.severity.value}: {finding.code}{op} {finding.message}"


def error_line(error: ToolError) -> str:
    where = f"{error.where}: " if error.where else ""
    return f"{where}error: {error.message}"


def summary(report: Report) -> str:
    """What was checked and how it came out; says so where nothing was verified."""
    counts = Counter(row.verdict for row in report.checked)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    operators = "1 operator" if len(report.checked) == 1 else f"{len(report.checked)} operators"
    line = f"{operators}: {', '.join(parts)}" if parts else "no operators found"
    if not any(row.verdict is not Verdict.UNKNOWN for row in report.checked):
        line += "; nothing verified"
    if report.errors:
        line += f"; {len(report.errors)} could not be read or done"
    return line


def rows(report: Report) -> list[Checked]:
    """The operators worth a line in a table: all but the unknown ones, worst first."""
    order = [Verdict.WRONG, Verdict.OVER_DECLARED, Verdict.NEEDS_GUARD, Verdict.RIGHT]
    return sorted((row for row in report.checked if row.verdict in order), key=lambda row: order.index(row.verdict))


def json(report: Report) -> str:
    """The whole report; `version` changes when a field changes its meaning."""
    document = {
        "version": VERSION,
        "exit_code": report.exit_code,
        "summary": {verdict.value: n for verdict, n in Counter(row.verdict for row in report.checked).items()},
        "checked": [_checked(row) for row in report.checked],
        "findings": [_finding(finding) for finding in report.findings],
        "errors": [{"message": error.message, **_where(error.where)} for error in report.errors],
        "facts": report.facts,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _checked(row: Checked) -> dict[str, Any]:
    return {
        "op": row.op,
        "schema": row.schema,
        "verdict": row.verdict.value,
        "reason": row.reason,
        **_where(row.location),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": Severity(finding.severity).value,
        "op": finding.op,
        "message": finding.message,
        "fixable": finding.fixable,
        **_where(finding.location),
    }


def _where(location: Any) -> dict[str, Any]:
    return {"path": location.path, "line": location.line, "column": location.column} if location else {}
