"""Report -> SARIF 2.1.0, as GitHub's code scanning takes it. Returns a string."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec

from schema_patch import __version__
from schema_patch.model import Finding, Location, Report, ToolError
from schema_patch.schemas import codes

LIMIT = 25_000  # results that GitHub takes of one run


def sarif(report: Report) -> str:
    """The whole report. What could not be read is a notification of the run, which then was no success."""
    used = sorted({finding.code for finding in report.findings})
    driver = {
        "name": "schema-kit",
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "results": [_result(finding, used.index(finding.code)) for finding in report.findings[:LIMIT]],
        "invocations": [
            {
                "executionSuccessful": not report.errors,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [_notification(error) for error in report.errors],
            }
        ],
    }
    document = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _rule(code: str) -> dict[str, Any]:
    """A rule without helpUri: that must be absolute, and the kit has no address; its page is named in the help."""
    text, level = codes.load()[code]
    return {
        "id": code,
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text[:1].upper()}{text[1:]}."},
        "help": {"text": f"{text}. Why it hurts, wrong and right: docs/codes/{code}.md in the sources of schema-kit"},
        "defaultConfiguration": {"level": level.value},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    words = f"{finding.code} {finding.op} {finding.location.path} {finding.message}"
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": f"{finding.op}: {finding.message}" if finding.op else finding.message},
        "locations": [_location(finding.location)],
        "partialFingerprints": {"finding/v1": hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:32]},
    }


def _location(location: Location) -> dict[str, Any]:
    """A finding of a whole file stands at its first line: code scanning shows none without one."""
    uri = quote(location.path.removeprefix("./").encode("utf-8", "surrogateescape"), safe="/:+@~")
    region = {"startLine": max(1, location.line), "startColumn": max(1, location.column)}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def _notification(error: ToolError) -> dict[str, Any]:
    where = {"locations": [_location(error.where)]} if error.where else {}
    return {"level": "error", "message": {"text": error.message}, **where}
