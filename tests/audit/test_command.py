"""The command `audit`: verdicts, exit codes, evidence, suppression, baseline, and `apply --infer`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trees

from schema_patch.commands import main

LIES = "at::Tensor op(at::Tensor a, at::Tensor b) { b.copy_(a); return b; }"
PARTIAL = "void op(at::Tensor a, at::Tensor b) { a.zero_(); b.zero_(); }"
HONEST = "void op(at::Tensor a, at::Tensor b) { b.copy_(a); }"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tree(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    trees.write(folder, **files)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main.main([str(word) for word in words])
    streams = capsys.readouterr()
    return code, streams.out + streams.err


@pytest.mark.parametrize(
    ("code", "arguments", "returns", "exit_code", "found"),
    [
        (LIES, "Tensor a, Tensor b", "Tensor", 1, "SP101"),
        (PARTIAL, "Tensor(a!) a, Tensor b", "()", 1, "SP102"),
        ("void op(at::Tensor a, at::Tensor b) { b.contiguous().copy_(a); }", "Tensor a, Tensor b", "()", 1, "'b', where it is contiguous, at "),
        ("at::Tensor op(at::Tensor a, at::Tensor b) { b.copy_(a); return b; }", "Tensor a, Tensor(a!) b", "Tensor", 1, "SP103"),
        ("at::Tensor op(at::Tensor a, at::Tensor b) { static at::Tensor t; t = a + b; return t; }", "Tensor a, Tensor b", "Tensor", 1, "SP104"),
        (HONEST, "Tensor a, Tensor! b", "()", 0, "1 right"),
        ("void op(at::Tensor a, at::Tensor b) { far(a, b); }", "Tensor a, Tensor b", "()", 2, "1 unknown; nothing verified"),
    ],
)  # fmt: skip
def test_verdicts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    code: str,
    arguments: str,
    returns: str,
    exit_code: int,
    found: str,
) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(code, arguments, returns))
    assert (result := run(capsys, "audit", folder))[0] == exit_code, result
    assert found in result[1]


def test_over_declared_counts_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(HONEST, "Tensor! a, Tensor! b"))
    assert run(capsys, "audit", folder)[0] == 0
    code, text = run(capsys, "audit", folder, "--strict")
    assert (code, "SP106" in text) == (1, True)


def test_a_place_of_several_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "std::tuple<at::Tensor, at::Tensor> op(at::Tensor a, at::Tensor b) { b.copy_(a); return {a + b, b}; }"
    folder = tree(tmp_path, op_cpp=trees.source(code, "Tensor a, Tensor(a!) b", "(Tensor, Tensor)"))
    assert "SP103 op: returns 'b' in place 1" in run(capsys, "audit", folder)[1]


def test_an_empty_tree_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path)
    assert run(capsys, "audit", folder)[0] == 2
    assert run(capsys, "audit", tmp_path / "nowhere")[0] == 2


def test_evidence_is_in_the_message_and_in_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(LIES, returns="Tensor"))
    assert f"'b' at {folder}/op.cpp:3" in run(capsys, "audit", folder)[1]
    document = json.loads(run(capsys, "audit", folder, "--format", "json")[1])
    (evidence,) = document["facts"]["evidence"]
    assert [(a["name"], a["answer"], a["chain"]) for a in evidence["arguments"]] == [
        ("a", "read only", []),
        ("b", "written", [f"{folder}/op.cpp:3"]),
    ]
    assert evidence["returns"] == ["b"]
    assert [f["fixable"] for f in document["findings"]] == [True]


def test_apply_infer_writes_what_was_proved_and_revert_takes_it_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(PARTIAL, "Tensor? a, Tensor[] b"))
    before = (folder / "op.cpp").read_bytes()
    (folder / "op.cpp").write_bytes(before.replace(b"b.zero_()", b"b[0].zero_()"))
    before = (folder / "op.cpp").read_bytes()
    assert run(capsys, "apply", folder)[0] == 2  # the table knows no such operator
    assert (folder / "op.cpp").read_bytes() == before
    assert run(capsys, "apply", "--infer", folder)[0] == 0
    after = (folder / "op.cpp").read_bytes()
    assert after == before.replace(b"Tensor? a, Tensor[] b", b"Tensor(a!)? a, Tensor(b!)[] b")
    assert run(capsys, "apply", "--infer", folder)[0] == 0
    assert (folder / "op.cpp").read_bytes() == after
    assert run(capsys, "audit", folder)[0] == 0
    run(capsys, "revert", folder)
    assert (folder / "op.cpp").read_bytes() == before


def test_operators_of_one_name_that_differ_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path)
    for name, code in (("one", LIES), ("two", LIES.replace("b.copy_(a)", "a.copy_(b)"))):
        (folder / name).mkdir()
        trees.write(folder / name, op_cpp=trees.source(code, returns="Tensor"))
    before = [path.read_bytes() for path in sorted(folder.rglob("*.cpp"))]
    run(capsys, "apply", "--infer", folder)
    assert [path.read_bytes() for path in sorted(folder.rglob("*.cpp"))] == before


def test_a_comment_suppresses_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = trees.source(LIES, returns="Tensor")
    folder = tree(tmp_path, op_cpp=text.replace("  m.def", "  // schema-patch: ignore[SP101] scratch\n  m.def"))
    code, shown = run(capsys, "audit", folder)
    assert "SP101" not in shown
    assert "1 suppressed" in shown
    assert code == 0


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("ignore[SP101]", "SP109 a suppression without a reason"),
        ("ignore[SP104] why", "suppresses nothing: no finding SP104"),
    ],
)
def test_a_comment_that_says_too_little_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], comment: str, found: str
) -> None:
    text = trees.source(LIES, returns="Tensor").replace("  m.def", f"  // schema-patch: {comment}\n  m.def")
    code, shown = run(capsys, "audit", tree(tmp_path, op_cpp=text), "--strict")
    assert code == 1
    assert found in shown


def test_a_baseline_accepts_what_was_there_and_nothing_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(LIES, returns="Tensor"))
    baseline = tmp_path / "accepted.json"
    assert run(capsys, "audit", folder, "--write-baseline", baseline)[0] == 0
    assert run(capsys, "audit", folder, "--baseline", baseline)[0] == 0
    text = (folder / "op.cpp").read_text()
    (folder / "op.cpp").write_text("\n\n// moved\n" + text)  # lines move, the finding stays accepted
    assert run(capsys, "audit", folder, "--baseline", baseline)[0] == 0
    trees.write(folder, more_cpp=trees.source(PARTIAL, "Tensor a, Tensor(a!) b").replace('"op', '"other'))
    code, shown = run(capsys, "audit", folder, "--baseline", baseline)
    assert code == 1
    assert "SP102 other" in shown
    assert "SP101 op" not in shown
    (folder / "op.cpp").write_text(trees.source(HONEST, "Tensor a, Tensor! b"))
    assert "is found no more: take it out" in run(capsys, "audit", folder, "--baseline", baseline)[1]


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2, "findings": []}', '{"version": 1, "finding": []}'])
def test_a_baseline_that_is_none_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(HONEST, "Tensor a, Tensor! b"))
    (tmp_path / "b.json").write_text(content)
    code, shown = run(capsys, "audit", folder, "--baseline", tmp_path / "b.json")
    assert code == 2
    assert "expected a baseline" in shown


def test_the_cache_answers_the_same_and_notices_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree(tmp_path, op_cpp=trees.source(LIES, returns="Tensor"))
    first = run(capsys, "audit", folder)
    assert run(capsys, "audit", folder) == first
    assert run(capsys, "audit", folder, "--no-cache") == first
    trees.write(folder, op_cpp=trees.source(HONEST, "Tensor a, Tensor! b"))
    assert run(capsys, "audit", folder)[0] == 0
    for file in (tmp_path / "cache").rglob("*.pickle"):
        file.write_bytes(file.read_bytes()[:40])  # cut, as by a full disk
    assert run(capsys, "audit", folder)[0] == 0


def test_schemas_in_a_patch_file_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = '--- a/x.cpp\n+++ b/x.cpp\n@@ -1,2 +1,4 @@\n TORCH_LIBRARY(n, m) {\n+  m.def("hidden(Tensor a, "\n+        "Tensor out) -> ()");\n-  m.def("old(Tensor a) -> ()");\n'
    folder = tree(tmp_path, change_patch=patch)
    document = json.loads(run(capsys, "audit", folder, "--format", "json")[1])
    assert [(row["op"], row["line"], row["verdict"]) for row in document["checked"]] == [("hidden", 5, "unknown")]


def test_fakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = "import torch\n@torch.library.register_fake('planted::op')\ndef _(a, b, c): return None\n"
    adds = "at::Tensor op(at::Tensor a, at::Tensor b) { return a + b; }"
    folder = tree(tmp_path, op_cpp=trees.source(adds, returns="Tensor"), fakes_py=python)
    code, shown = run(capsys, "audit", folder)
    assert code == 1
    assert "SP108 op: the fake takes 3 arguments" in shown
    trees.write(folder, fakes_py="x = 1\n")
    assert "SP107 op" in run(capsys, "audit", folder, "--strict")[1]
    trees.write(folder, fakes_py=python.replace(", c", ""))
    assert run(capsys, "audit", folder, "--strict")[0] == 0


NAMED = {
    "computed": "@torch.library.register_fake(prefixed('op'))\ndef _(a, b, c): return a\n",
    "in a loop": "for name in ['op']:\n    torch.library.register_fake(f'planted::{name}')(fake)\n",
    "by a helper": "@compatible_register_fake('planted::op')\ndef _(a, b, c): return a\n",
    "by the operator": "@torch.library.register_fake(torch.ops.planted.op.default)\ndef _(a, b): return a\n",
    "another operator of that name": "def fake(a, b, c): return a\n"
    "direct_register_custom_op('op', wrapped, fake_impl=fake)\n@torch.library.register_fake('planted::op')\ndef _(a, b): return a\n",
}  # fmt: skip


@pytest.mark.parametrize("style", NAMED)
def test_a_fake_whose_name_is_not_written_out_is_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    adds = "at::Tensor op(at::Tensor a, at::Tensor b) { return a + b; }"
    folder = tree(
        tmp_path, op_cpp=trees.source(adds, returns="Tensor"), fakes_py="import torch\nfake = None\n" + NAMED[style]
    )
    assert run(capsys, "audit", folder, "--strict")[0] == 0


def test_an_operator_that_only_writes_needs_no_fake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """torch._library.utils.can_generate_trivial_fake_impl"""
    folder = tree(tmp_path, op_cpp=trees.source(HONEST, "Tensor a, Tensor! b"), fakes_py="x = 1\n")
    assert run(capsys, "audit", folder, "--strict")[0] == 0


def test_a_fake_without_an_argument_that_has_a_default_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = "import torch\n@torch.library.register_fake('planted::op')\ndef _(a, b): return a\n"
    adds = "at::Tensor op(at::Tensor a, at::Tensor b, bool c) { return a + b; }"
    text = trees.source(adds, "Tensor a, Tensor b, bool c=False", returns="Tensor")
    folder = tree(tmp_path, op_cpp=text, fakes_py=python)
    assert run(capsys, "audit", folder)[0] == 0
    assert "a call that gives 'c' fails" in run(capsys, "audit", folder, "--strict")[1]
