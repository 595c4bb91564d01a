"""Every planted lie is found and told with its evidence; nothing is found of the honest ones."""

from __future__ import annotations

import planted
import planted_kinds
import pytest
from planted import HONEST, LIARS

from esimd_ops.observe import Seen, observe, tables
from schema_patch.model import Report, Severity, Verdict

FILES = ("planted.py", "planted_kinds.py")
LIES = planted.LIES | planted_kinds.LIES
ANSWERS = planted.ANSWERS | planted_kinds.ANSWERS


@pytest.fixture(scope="module")
def seen(operators: object) -> Seen:
    import torch

    with observe([LIARS, HONEST]) as seen:
        for space, cases in ((LIARS, LIES), (HONEST, ANSWERS)):
            for name, case in cases.items():
                case.run(getattr(getattr(torch.ops, space), name.partition(".")[0], None))
    return seen


@pytest.fixture(scope="module")
def report(seen: Seen) -> Report:
    return seen.report()


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found_with_its_evidence(report: Report, name: str) -> None:
    case, op = LIES[name], f"{LIARS}::{name}"
    found = [finding for finding in report.findings if finding.op == op]
    assert {finding.code for finding in found} == set(case.codes), found
    assert any(case.says in finding.message for finding in found), found
    assert all("planted" in finding.message and finding.location.path.endswith(FILES) for finding in found)
    (row,) = (row for row in report.checked if row.op == op)
    assert row.verdict is Verdict.WRONG


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_found_of_an_honest_operator(report: Report, name: str) -> None:
    case, op = ANSWERS[name], f"{HONEST}::{name}"
    found = [finding for finding in report.findings if finding.op == op]
    assert tuple(finding.code for finding in found) == case.codes, found
    assert not [finding for finding in found if finding.severity is Severity.ERROR]
    (row,) = (row for row in report.checked if row.op == op)
    assert case.says in row.reason
    expected = Verdict.UNKNOWN if case.says else Verdict.NEEDS_GUARD if case.codes else Verdict.RIGHT
    assert row.verdict is expected, row


@pytest.mark.parametrize("name", [name for name, case in LIES.items() if case.table])
def test_the_table_says_what_was_seen(seen: Seen, name: str) -> None:
    record = seen.record
    record.operators = {op: found for op, found in record.operators.items() if op.startswith(f"{LIARS}::")}
    entry = tables.table(record).entries[name]
    assert (entry.writes, entry.returns) == LIES[name].table
    assert entry.observed
    assert "planted.py:" in entry.evidence


def test_what_was_never_called_is_said(report: Report) -> None:
    never = [row.op for row in report.checked if row.reason == "never called"]
    assert never == [f"{LIARS}::python_overload"]
    assert len(planted.LIES) >= 30 <= len(planted.ANSWERS)
