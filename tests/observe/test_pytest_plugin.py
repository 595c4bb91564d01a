"""The plugin in a pytest of its own, with and without worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest, torch

library = torch.library.Library("tested", "FRAGMENT")
for schema in ("lie(Tensor x, Tensor out) -> ()", "known(Tensor x, Tensor out) -> ()", "honest(Tensor x, Tensor(a!) out) -> ()"):
    library.define(schema)
    library.impl(schema.partition("(")[0], lambda x, out: (out.copy_(x * 2), None)[1], "CPU")
    torch.library.register_fake("tested::" + schema.partition("(")[0], lambda x, out: None)

def call(op):
    op(torch.ones(3), torch.zeros(3))

def test_honest():
    call(torch.ops.tested.honest)

@pytest.mark.schema_allow("tested::known", reason="reported upstream")
def test_known():
    call(torch.ops.tested.known)
"""
LIE = "\ndef test_lie():\n    call(torch.ops.tested.lie)\n"


@pytest.fixture
def run(entry_points: Path, tmp_path: Path):
    def run(tests: str, *argv: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(tests)
        path = os.pathsep.join([str(entry_points), str(Path(__file__).parents[2])])
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *argv, "test_it.py"],
            capture_output=True, text=True, cwd=tmp_path, check=False, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_lie_fails_the_run_and_one_that_is_allowed_does_not(run, workers: tuple[str, ...]) -> None:
    done = run(TESTS + LIE, "--schema-observe", "tested", *workers)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error: SP101 tested::lie: writes 'out' undeclared" in done.stdout
    assert "unknown: tested::known: 1 calls, none of them watched: reported upstream (1)" in done.stdout
    assert "3 operators: 1 right, 1 wrong, 1 unknown" in done.stdout
    assert "3 passed" in done.stdout


def test_without_a_lie_the_run_is_green_and_the_table_is_written(run, tmp_path: Path) -> None:
    done = run(TESTS, "--schema-observe", "tested", "--schema-table", "mine.toml", "--schema-save", "calls")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[operators.honest]" in (tmp_path / "mine.toml").read_text()
    assert sorted(path.suffix for path in (tmp_path / "calls").iterdir()) == [".pt", ".toml"]


def test_opcheck_replays_the_calls(run) -> None:
    done = run(TESTS + LIE, "--schema-opcheck", "tested")
    assert done.returncode == 1, done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if "OB103" in line]
    assert any(
        "tested::lie: opcheck, test_schema: RuntimeError: Argument out is not defined as mutable" in line
        for line in told
    )
    assert not any("honest" in line for line in told), told


def test_nothing_seen_is_not_clean_and_nothing_asked_is_nothing_done(run) -> None:
    done = run(TESTS, "--schema-observe", "elsewhere")
    assert done.returncode == 1
    assert "no operators found; nothing verified" in done.stdout
    assert "namespace 'elsewhere': expected operators torch.ops.elsewhere, found none" in done.stdout
    done = run(TESTS + LIE)
    assert done.returncode == 0
    assert "schema" not in done.stdout
