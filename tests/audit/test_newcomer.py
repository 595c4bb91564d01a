"""What a maintainer meets who runs `audit` for the first time: files that cannot be read, comments, a first baseline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trees

from schema_patch.commands import main
from schema_patch.inference.index import tree as trees_on_disk

LIES = "void op(at::Tensor a, at::Tensor b) { b.copy_(a); }"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main.main([str(word) for word in words])
    streams = capsys.readouterr()
    return code, streams.out + streams.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


def test_a_file_that_is_too_large_to_be_read_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees_on_disk, "LARGEST", 100)
    trees.write(folder, op_cpp=trees.source(LIES), other_h="int x;\n" * 100)
    code, shown = run(capsys, "audit", folder)
    assert code == 2
    assert shown.count("expected C++ of at most 100 bytes") == 1  # the header registers nothing


def test_a_binary_that_may_register_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees.write(folder, op_cpp=trees.source(LIES) + "\0")
    code, shown = run(capsys, "audit", folder)
    assert (code, "found a binary file: not read" in shown) == (2, True)


@pytest.mark.parametrize("name", ["op.cpp", "ops.py"])
def test_a_file_that_may_not_be_read_is_told_and_the_others_are_judged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    trees.write(folder, a_cpp=trees.source(LIES), op_cpp=trees.source(LIES), ops_py="x = 1\n")

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "open" and str(arguments[0]).endswith(name):
            raise PermissionError(13, "Permission denied", str(arguments[0]))

    watching = [True]  # a hook cannot be taken away again
    sys.addaudithook(refuse)
    code, shown = run(capsys, "audit", folder)
    watching.clear()
    assert code == 2
    assert f"{name}: error: cannot read: Permission denied" in shown
    assert "SP101 op" in shown


SPREAD = "TORCH_LIBRARY(planted, m) {\n%s\n  m.def(\n      \"op(Tensor a, \"\n      \"Tensor b) -> ()\");\n  m.impl(\"op\", torch::kCPU, &op);\n}\n"  # fmt: skip
COMMENTS = {
    "above the call": "  // schema-patch: ignore[SP101] known",
    "above another comment": "  // schema-patch: ignore[SP101] known\n  // and more of it\n",
    "two": "  // schema-patch: ignore[SP101] known\n  // schema-patch: ignore[SP101, SP102] twice",
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_stands_above_the_call(folder: Path, capsys: pytest.CaptureFixture[str], comment: str) -> None:
    trees.write(folder, op_cpp=f"{LIES}\n{SPREAD % COMMENTS[comment]}")
    assert run(capsys, "audit", "--strict", folder)[0] == 0


def test_a_comment_does_not_reach_the_next_operator(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SPREAD % "  // schema-patch: ignore[SP101] this one alone\n  int x = 0;"
    trees.write(folder, op_cpp=f"{LIES}\n{text}")
    assert run(capsys, "audit", folder)[0] == 1


@pytest.mark.parametrize("comment", ["ignore known", "ignore[] known", "ignore[sp101] known", "ignore[SP102] known"])
def test_a_comment_that_suppresses_nothing_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], comment: str
) -> None:
    trees.write(folder, op_cpp=f"{LIES}\n{SPREAD % f'  // schema-patch: {comment}'}")
    code, shown = run(capsys, "audit", "--strict", folder)
    assert code == 1
    assert "SP101 op" in shown
    assert "SP109 suppresses nothing" in shown


def test_a_baseline_of_nothing_is_no_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "audit", "--write-baseline", folder / "b.json", folder)[0] == 2


def test_a_strict_baseline_accepts_warnings_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alias = "at::Tensor op(at::Tensor a, at::Tensor b) { b.copy_(a); return b; }"
    trees.write(folder, op_cpp=trees.source(alias, "Tensor a, Tensor(a!) b", "Tensor(a!)"))
    baseline = folder / "b.json"
    assert run(capsys, "audit", "--strict", "--write-baseline", baseline, folder)[0] == 0
    assert run(capsys, "audit", "--strict", "--baseline", baseline, folder)[0] == 0


def test_what_is_wrong_of_another_returned_value_is_not_called_right(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "std::tuple<at::Tensor, at::Tensor> op(at::Tensor a, at::Tensor b) { return {a + 1, b}; }"
    trees.write(folder, op_cpp=trees.source(code, returns="(Tensor, Tensor)"))
    assert "1 operator: 1 wrong" in run(capsys, "audit", folder)[1]


def test_two_runs_say_the_same_whatever_the_hashes(folder: Path) -> None:
    """Of several chains of one length, and of several reasons, the same are reported."""
    bodies = "".join(f"  f{n}(b.data_ptr<float>()); far{n}(a.data_ptr<float>());\n" for n in range(9, 0, -1))
    helpers = "".join(f"void f{n}(float* p) {{ p[{n}] = 1; }}\n" for n in range(1, 10))
    union = "  float* p = a.data_ptr<float>(); if (a.numel()) p = b.data_ptr<float>(); if (b.numel()) p = c.data_ptr<float>(); p[0] = 1;\n"
    code = f"{helpers}void op(at::Tensor a, at::Tensor b, at::Tensor c) {{\n{bodies}{union}}}"
    trees.write(folder, op_cpp=trees.source(code, "Tensor a, Tensor b, Tensor c"))
    command = [sys.executable, "-m", "schema_patch", "audit", "--no-cache", "--format", "json", str(folder)]
    shown = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=False
        ).stdout
        for seed in "12"
    }
    assert len(shown) == 1
    assert '"SP101"' in shown.pop()
