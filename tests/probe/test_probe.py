"""The probe sees what is deleted, what is wrong and what is refused, keeps the graph, and survives an operator that kills it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from esimd_ops.probe import run
from esimd_ops.probe.question import Question
from schema_patch.model import Report, Verdict

PLANTED = str(Path(__file__).parent / "planted.py")


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, dict, Path]:
    keep = tmp_path_factory.mktemp("graphs")
    questions = [Question("planted", op, "cpu", samples=PLANTED) for op in ("right", "shipped", "alias", "gone")]
    return *run.probe(questions, keep=str(keep)), keep


def test_verdicts(probed: tuple[Report, dict, Path]) -> None:
    report, answers, _ = probed
    assert {row.op: row.verdict for row in report.checked} == {
        "right": Verdict.RIGHT, "shipped": Verdict.WRONG, "alias": Verdict.NEEDS_GUARD,
    }  # fmt: skip
    assert report.exit_code == 2
    assert [str(error) for error in report.errors] == ["torch.ops.planted: gone: planted::gone is not registered"]
    assert {(f.op, f.code) for f in report.findings} == {("shipped", "PB101"), ("alias", "PB102")}
    outcomes = {(s.program, s.stage): s.outcome for s in answers["shipped"].seen}
    assert outcomes["buffer read", "functionalized"] == "deleted"
    assert outcomes["return read", "functionalized"] == "right"
    assert outcomes["both read", "inductor"] == "wrong"
    assert {s.outcome for s in answers["right"].seen} == {"right"}
    assert "alias annotations" in answers["alias"].seen[0].detail


def test_the_graph_without_the_call_is_kept_as_a_file(probed: tuple[Report, dict, Path]) -> None:
    _, _, keep = probed
    graph = (keep / "shipped.buffer-read.functionalized.txt").read_text()
    assert "def forward" in graph
    assert "planted.shipped" not in graph
    assert not list(keep.glob("right.*"))


def test_with_the_guard_it_is_right() -> None:
    ops = ("shipped", "kept", "pair")
    report, answers = run.probe([Question("planted", op, "cpu", samples=PLANTED, guard=True) for op in ops])
    assert {row.op: row.verdict for row in report.checked} == dict.fromkeys(ops, Verdict.RIGHT)
    assert report.exit_code == 0
    assert ("result kept", "inductor") in {(seen.program, seen.stage) for seen in answers["kept"].seen}


def test_a_kept_buffer_is_wrong_only_where_a_compiler_moves_the_read() -> None:
    """Eager reads the first result before the second call; Inductor, which takes it for new, after."""
    report, answers = run.probe([Question("planted", "kept", "cpu", samples=PLANTED)])
    wrong = {(seen.program, seen.stage) for seen in answers["kept"].seen if seen.silent}
    assert wrong == {("result kept", "inductor")}
    assert [row.verdict for row in report.checked] == [Verdict.WRONG]


def test_without_a_fake_a_lie_is_seen_all_the_same() -> None:
    """The sample's buffer holds the answer, two results come back, one argument is keyword-only."""
    report, answers = run.probe([Question("planted", "pair", "cpu", samples=PLANTED)])
    assert {(f.code, f.severity.value) for f in report.findings} == {("PB101", "error"), ("PB102", "warning")}
    assert "no fake is registered" in "".join(finding.message for finding in report.findings)
    assert {seen.outcome for seen in answers["pair"].seen if seen.program == "buffer read"} == {"deleted"}


def test_an_operator_that_ends_the_process(tmp_path: Path) -> None:
    file = tmp_path / "killer.py"
    file.write_text(
        "import os, torch\n"
        "library = torch.library.Library('killer', 'FRAGMENT')\n"
        "library.define('op(Tensor x, Tensor(a!) output) -> ()')\n"
        "library.impl('op', lambda x, output: os.kill(os.getpid(), 11), 'CPU')\n"
        "SAMPLES = {'op': (torch.ones(2), torch.ones(2))}\nWRITES = {'op': ['output']}\n"
    )
    report, _ = run.probe([Question("killer", "op", "cpu", samples=str(file))])
    assert [(f.code, f.message) for f in report.findings] == [("PB104", "ended by SIGSEGV")]
    assert report.exit_code == 1
    assert os.path.exists(file)


def test_each_operator_loses_only_itself(tmp_path: Path) -> None:
    """One raises, one dies, one has more outputs than fit into a pipe: the last is probed all the same."""
    names = [f"o{n}" for n in range(60)]
    file = tmp_path / "several.py"
    file.write_text(
        "import os, torch\n"
        "library = torch.library.Library('several', 'FRAGMENT')\n"
        "def op(name, schema, function):\n"
        "    library.define(name + schema)\n"
        "    library.impl(name, function, 'CPU')\n"
        "    library.impl(name, lambda *values: None, 'Meta')\n"
        "def fill(*outputs):\n"
        "    for output in outputs:\n"
        "        output.fill_(7)\n"
        "def fail(output):\n"
        "    raise AssertionError('a bug of its own')\n"
        "op('raises', '(Tensor(a!) output) -> ()', fail)\n"
        "op('dies', '(Tensor(a!) output) -> ()', lambda output: os.abort())\n"
        f"op('many', '({', '.join('Tensor ' + name for name in names)}) -> ()', fill)\n"
        f"names = {names}\n"
        "SAMPLES = {'raises': (torch.ones(2),), 'dies': (torch.ones(2),), 'many': tuple(torch.ones(2 + n) for n in range(60))}\n"
        "WRITES = {'raises': ['output'], 'dies': ['output'], 'many': names}\n"
    )
    questions = [Question("several", op, "cpu", samples=str(file)) for op in ("raises", "dies", "many")]
    report, answers = run.probe(questions)
    assert "AssertionError: a bug of its own" in str(report.errors[0])
    assert [(f.op, f.code) for f in report.findings] == [("dies", "PB104"), ("many", "PB101"), ("many", "PB101")]
    assert sum(len(seen.text) for seen in answers["many"].seen) > 1 << 16  # more than a pipe holds
