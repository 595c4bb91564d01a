"""`python -m esimd_ops observe` as a person types it, and the switch for servers and their workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.schemas import table

HERE = Path(__file__).parent
PROGRAM = str(HERE / "program.py")


@pytest.fixture
def run(entry_points: Path, tmp_path: Path):
    def run(*argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(entry_points), str(HERE.parents[1])])
        return subprocess.run(
            [sys.executable, *argv], capture_output=True, text=True, cwd=tmp_path, check=False,
            env={**os.environ, "PYTHONPATH": path, **variables},
        )  # fmt: skip

    return run


def test_a_program_with_a_worker_a_table_a_page_and_its_calls(run, tmp_path: Path) -> None:
    asked = ("--namespace", "prog", "-o", "mine.toml", "--html", "page.html", "--save", "calls")
    done = run("-m", "esimd_ops", "observe", *asked, "--", PROGRAM, "spawn", "--flag")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "program: spawn --flag"
    assert [line.split()[2:4] for line in lines if "error:" in line] == [
        ["SP101", "prog::lie:"],
        ["SP101", "prog::worker:"],
    ]
    assert "never called: prog::never" in lines
    assert lines[-1] == "4 operators: 1 right, 2 wrong, 1 unknown"
    entries = table.read_file(tmp_path / "mine.toml").entries
    assert {name: entry.writes for name, entry in entries.items()} == dict.fromkeys(
        ("honest", "lie", "worker"), ("out",)
    )
    assert "prog::worker" in (tmp_path / "page.html").read_text()

    again = run("-m", "esimd_ops", "observe", "--namespace", "prog", "-o", "mine.toml", "--", PROGRAM)
    assert again.returncode == 1
    assert table.read_file(tmp_path / "mine.toml").entries["lie"].observed == 2

    # What was saved is a sample, and the table beside it says what is written.
    checked = run(
        "-m", "esimd_ops", "check", "--quick", "--namespace", "prog", "--library", PROGRAM, "--samples", "calls"
    )
    assert checked.returncode == 1, checked.stderr
    assert sorted(line.split()[2:4] for line in checked.stdout.splitlines() if "error:" in line) == [
        ["PA103", "lie:"], ["PA103", "worker:"]
    ]  # fmt: skip


def test_a_contradiction_with_what_a_person_wrote(run, tmp_path: Path) -> None:
    text = 'namespaces = ["prog"]\n[operators.lie]\narguments = ["x", "out"]\nreturns = "nothing"\n'
    (tmp_path / "mine.toml").write_text(text)
    done = run("-m", "esimd_ops", "observe", "-o", "mine.toml", "--", PROGRAM)
    assert done.returncode == 2
    assert (
        "operator lie is described twice, differently: 'out' is written in the one and not in the other" in done.stderr
    )
    assert (tmp_path / "mine.toml").read_text() == text


def test_a_program_that_is_killed_is_told_with_what_was_seen(run) -> None:
    done = run("-m", "esimd_ops", "observe", "--format", "json", "--", PROGRAM, "kill")
    assert done.returncode == 2
    assert "the program ended with exit code -9" in done.stderr
    report = json.loads(done.stdout)
    assert [finding["op"] for finding in report["findings"]] == ["prog::lie"]
    assert report["findings"][0]["path"] == PROGRAM
    assert report["facts"]["operators"]["prog::lie"]["writes"]["out"]["of"] == 12


def test_a_namespace_that_nobody_has_is_an_error(run, tmp_path: Path) -> None:
    """Also beside one that is there: what was not looked at must not look clean."""
    expected = "namespace 'porg': expected operators torch.ops.porg, found none; did you mean 'prog'?"
    done = run("-m", "esimd_ops", "observe", "--namespace", "porg", "--", PROGRAM)
    assert (done.returncode, "nothing verified" in done.stdout) == (2, True)
    assert expected in done.stderr
    options = {"SCHEMA_KIT_OBSERVE": str(tmp_path / "seen.json"), "SCHEMA_KIT_OBSERVE_OPTIONS": "namespace=prog,porg"}
    assert run(PROGRAM, **options).returncode == 0
    done = run("-m", "esimd_ops", "observe", "--from", "seen.json")
    assert done.returncode == 2
    assert expected in done.stderr
    assert "error: SP101 prog::lie" in done.stdout
    done = run("-m", "esimd_ops", "observe", "--from", "seen.json", "--namespace", "prog")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "4 operators: 1 right, 1 wrong, 2 unknown")
    done = run("-m", "esimd_ops", "observe", "--from", "seen.json", "--budget", "0.1")
    assert "--save and --budget are for a program" in done.stderr


def test_a_module_without_operators_is_not_clean(run) -> None:
    done = run("-m", "esimd_ops", "observe", "--", "-m", "json.tool", "--help")
    assert done.returncode == 2
    assert "nothing verified" in done.stdout


def test_the_switch_for_servers(run, tmp_path: Path) -> None:
    asked = {"SCHEMA_KIT_OBSERVE": str(tmp_path / "seen.json"), "SCHEMA_KIT_OBSERVE_OPTIONS": "namespace=prog first=5"}
    assert run(PROGRAM, "spawn", **asked).returncode == 0
    done = run("-m", "esimd_ops", "observe", "--from", "seen.json", "--format", "sarif")
    assert done.returncode == 1, done.stderr
    results = json.loads(done.stdout)["runs"][0]["results"]
    assert [result["message"]["text"].split(":")[2] for result in results] == ["lie", "worker"]
    wrong = run(PROGRAM, **{**asked, "SCHEMA_KIT_OBSERVE_OPTIONS": "namespaces=prog"})
    assert (
        "SCHEMA_KIT_OBSERVE_OPTIONS: expected namespace=, first=, every=, budget=, save=, found 'namespaces'"
        in wrong.stderr
    )


def test_the_six_lines_of_the_readme(run, tmp_path: Path) -> None:
    readme = (HERE.parents[1] / "README.md").read_text()
    shown = readme.partition("observe, guard, done")[2].partition("\n\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in shown.splitlines()]
    assert len(lines) == 6
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "closed.py").write_text((HERE.parents[1] / "examples" / "closed.py").read_text())
    for command, answer in zip(lines[::2], lines[1::2], strict=True):
        words = command.removeprefix("$ ").removesuffix(" | tail -1").split()
        variables = dict(word.split("=", 1) for word in words[: words.index("python")])
        done = run(*words[words.index("python") + 1 :], TORCHINDUCTOR_FORCE_DISABLE_CACHES="1", **variables)
        assert done.stdout.splitlines()[-1] == answer, done.stderr
