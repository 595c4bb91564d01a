"""Report -> text, JSON or annotations of a CI. Returns strings; prints nothing, reads no file.

SARIF is in sarif.py, the page in html.py. report.schema.json says what the JSON holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from schema_patch.model import Checked, Finding, Location, Report, Severity, ToolError, Verdict

VERSION = 1


def text(report: Report) -> str:
    """The findings under the path that they are in, one line a package, and a summary."""
    return "\n".join([*finding_lines(report.findings), *package_lines(report), summary(report)])


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """A line a finding; in files that have no lines each path stands once, above its own."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(str(finding.location), []).append(finding)
    for path, rows in groups.items():
        if rows[0].location.line:
            yield from map(finding_line, rows)
            continue
        yield f"{one_line(path)}:"
        yield from (f"  {finding_line(finding).removeprefix(one_line(path))[2:]}" for finding in rows)


def finding_line(finding: Finding) -> str:
    op = f" {finding.op}:" if finding.op else ""
    told = f"{one_line(str(finding.location))}: {finding.severity.value}: {finding.code}{op} {finding.message}"
    return "\n".join(map(one_line, told.split("\n")))  # a message may show the place in a text on lines of its own


def one_line(text: str) -> str:
    """The text with escapes for what would break the line or move the cursor, which names of files may hold."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def page(name: str) -> str:
    """Where a page of docs/ lies; empty where the kit is installed, which has none."""
    path, here = Path(__file__).parents[2] / "docs" / f"{name}.md", Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path) if path.is_file() else ""


def error_line(error: ToolError) -> str:
    where = f"{error.where}: " if error.where else ""
    return "\n".join(map(one_line, f"{one_line(where)}error: {error.message}".split("\n")))


def summary(report: Report) -> str:
    """What was checked and how it came out; says so where nothing was verified."""
    operators = [row for row in report.checked if row.schema]
    others = [row for row in report.checked if not row.schema]
    line = f"{many(len(operators), 'operator')}: {_counted(operators)}" if operators else "no operators found"
    if others:
        checks = f"{many(len(others), 'other check' if operators else 'check')}: {_counted(others)}"
        line = f"{line}; {checks}" if operators else checks
    if not any(row.verdict is not Verdict.UNKNOWN for row in report.checked):
        line += "; nothing verified"
    if report.errors:
        line += f"; {len(report.errors)} could not be read or done"
    return line


def _counted(rows: list[Checked]) -> str:
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


def many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def package_lines(report: Report) -> list[str]:
    """One line a package: its version, what it holds, the runtime it needs and the devices it has code for."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for library in libraries(report):
        groups.setdefault(library["owner"] or "no package", []).append(library)
    return [f"{owner}: {_package(group)}" for owner, group in groups.items()]


def libraries(report: Report) -> list[dict[str, Any]]:
    """The facts of each library; none where the report is of sources."""
    found = report.facts.get("libraries")
    return found if isinstance(found, list) else []


def counted(group: list[dict[str, Any]]) -> str:
    return f"{len(group)} librar{'y' if len(group) == 1 else 'ies'}"


def devices(group: list[dict[str, Any]]) -> list[str]:
    """What the kernels of some libraries run on, with the codes of the devices."""
    codes = {code: entry["name"] for library in group for code, entry in library["targets"].items()}
    return [f"{name} ({code})" if name != code else code for code, name in sorted(codes.items())]


def _package(group: list[dict[str, Any]]) -> str:
    words = [counted(group), many(sum(library["schemas"] for library in group), "schema")]
    words += [f"libsycl.so.{major}" for major in sorted({library["sycl"] for library in group if library["sycl"]})]
    kernels = sum(library["kernels"] for library in group)
    if kernels:
        words.append(f"{many(kernels, 'kernel')} for {', '.join(devices(group))}")
        without = sum(library["without_spirv"] for library in group)
        words += [f"{without} of them without SPIR-V"] if without else []
    unread = [what for library in group for what in library["unread"]]
    if unread:
        more = f" and {many(len(unread) - 1, 'other part')}" if unread[1:] else ""
        words.append(f"{unread[0]}{more}: not looked into")
    return ", ".join(words)


def rows(report: Report) -> list[Checked]:
    """The operators worth a line in a table: all but the unknown ones, worst first."""
    order = [Verdict.WRONG, Verdict.OVER_DECLARED, Verdict.NEEDS_GUARD, Verdict.RIGHT]
    return sorted((row for row in report.checked if row.verdict in order), key=lambda row: order.index(row.verdict))


def json(report: Report) -> str:
    """The whole report; `version` changes when a field changes its meaning."""
    import msgspec  # a program that only shows its help needs none

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


def github(report: Report) -> str:
    """Workflow commands that put each finding and error beside its file, as GitHub Actions takes them."""
    lines = [
        _command(finding.severity.value, finding.code, finding.location, f"{finding.op} {finding.message}".strip())
        for finding in report.findings
    ]
    lines += [_command("error", "not verified", error.where, error.message) for error in report.errors]
    return "\n".join(lines)


def _command(level: str, title: str, where: Location | None, message: str) -> str:
    name = {"note": "notice"}.get(level, level)
    place = {"file": where.path.removeprefix("./"), "line": where.line or 1, "col": where.column or 1} if where else {}
    properties = ",".join(f"{key}={_escaped(str(value), ',:')}" for key, value in {**place, "title": title}.items())
    return f"::{name} {properties}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


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
