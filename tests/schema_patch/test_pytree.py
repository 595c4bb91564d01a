"""Whole trees, C++ and Python: apply, check and revert as a user types them, and what one module takes from another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schema_patch.commands import main
from schema_patch.text import files, journal

REGISTER = """#include <torch/library.h>
TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", &rms_norm);
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp16", &gemv);
}
"""
OPS = "import torch\n_ops = torch.ops.esimd_ops\n\n\ndef norm(x, out, w):\n    return _ops.esimd_rms_norm(x, out, w, 1e-6)\n"
FAKES = "import torch\n@torch.library.register_fake('esimd_ops::esimd_gemv_fp16')\ndef _(i, w, o):\n    return o\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name, text in {"csrc/ops.cpp": REGISTER, "py/ops.py": OPS, "py/fakes.py": FAKES, "py/__init__.py": ""}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file() and p.name != journal.NAME}


def found(root: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[tuple[str, str, bool]]:
    """The code, the file's name and whether it can be fixed, of what `check` finds in Python."""
    capsys.readouterr()
    main.main(["check", "--format", "json", str(root), *more])
    rows = json.loads(capsys.readouterr().out)["findings"]
    return [(f["code"], Path(f["path"]).name, f["fixable"]) for f in rows if f["path"].endswith(".py")]


def test_apply_check_revert(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    assert main.main(["apply", "--returns", "void", str(tree)]) == 0
    said = capsys.readouterr()
    assert "ops.py:6:12: esimd_rms_norm: is followed by its buffer now" in said.out
    assert "fakes.py:4:12: esimd_gemv_fp16: returns nothing now" in said.out
    assert said.err == "2 operators changed\n2 places in Python changed\n"
    assert (tree / "py/ops.py").read_text().endswith("    _ops.esimd_rms_norm(x, out, w, 1e-6)\n    return out\n")
    assert (tree / "py/fakes.py").read_text().endswith("    return None\n")
    after = contents(tree)
    assert main.main(["check", "--strict", str(tree)]) == 0
    assert main.main(["apply", "--returns", "void", str(tree)]) == 0
    assert contents(tree) == after
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before


def test_alias_leaves_python_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    assert main.main(["apply", str(tree)]) == 0
    after = contents(tree)
    assert {name for name in after if after[name] != before[name]} == {str(tree / "csrc/ops.cpp")}
    assert found(tree, capsys) == []


def test_only_the_operators_asked_for(tree: Path) -> None:
    before = contents(tree)
    assert main.main(["apply", "--returns", "void", "--ops", "esimd_gemv_fp16", str(tree)]) == 0
    assert contents(tree)[str(tree / "py/ops.py")] == before[str(tree / "py/ops.py")]
    assert (tree / "py/fakes.py").read_text().endswith("    return None\n")


def test_a_diff_shows_python_and_writes_nothing(tree: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tree / "model.py").write_text("import torch\nf(torch.ops.esimd_ops.esimd_rms_norm(x, o, w, 1))\n")
    before = contents(tree)
    assert main.main(["apply", "--returns", "void", "--diff", str(tree)]) == 1
    out, err = capsysbinary.readouterr()
    assert b"model.py:2:3: error: SP005 esimd_rms_norm: the result is used in an expression" in err
    assert b"-    return _ops.esimd_rms_norm(x, out, w, 1e-6)\n" in out
    assert b"+    return out\n" in out
    assert contents(tree) == before


def test_paths_apart_are_one_tree(tree: Path) -> None:
    assert main.main(["apply", "--returns", "void", str(tree / "py" / "ops.py"), str(tree / "csrc")]) == 0
    assert "return out" in (tree / "py/ops.py").read_text()
    assert "return o\n" in (tree / "py/fakes.py").read_text()


def test_a_caller_that_came_later(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted, after the fix: uses of a return that is gone. Each is found, and exit code 1."""
    assert main.main(["apply", "--returns", "void", str(tree)]) == 0
    (tree / "model.py").write_text(
        "import torch\nns = torch.ops.esimd_ops\n"
        "def f(x, o, w):\n    y = ns.esimd_gemv_fp16(x, w, o)\n    return y + ns.esimd_gemv_fp16(x, w, o)\n"
    )
    assert found(tree, capsys) == [("SP005", "model.py", True), ("SP005", "model.py", False)]
    assert main.main(["check", str(tree)]) == 1
    assert "model.py:5:16: error: SP005 esimd_gemv_fp16: the result is used in an expression" in capsys.readouterr().out
    assert found(tree, capsys, "--ops", "esimd_rms_norm") == []
    assert len(found(tree, capsys, str(tree / "model.py"))) == 2  # named twice, told once
    assert main.main(["apply", "--returns", "void", str(tree)]) == 1  # one rewritten, one left
    assert found(tree, capsys) == [("SP005", "model.py", False)]
    assert (tree / "model.py").read_text().count("    y = o\n") == 1


IMPORTS = {
    "from py.ops import _ops\ny = _ops.esimd_gemv_fp16(x, w, o)": "SP005",
    "from py import ops\ny = ops._ops.esimd_gemv_fp16(x, w, o)": "SP005",
    "import py.ops as p\ny = p._ops.esimd_gemv_fp16.default(x, w, o)": "SP005",
    "from .py.ops import _ops as q\ny = q.esimd_gemv_fp16(x, w, o)": "SP005",
    "from .py import gemv\ny = gemv(x, w, o)": "SP005",
    "from py import other\ny = other.gemv(x, w, o)": "SP005",
    "from py.ops import norm\ny = norm(x, o, w)": "",  # a wrapper returns its buffer
    "from py.nowhere import _ops\ny = _ops.esimd_gemv_fp16(x, w, o)": "",
    "from ..py.ops import _ops\ny = _ops.esimd_gemv_fp16(x, w, o)": "",  # a level too high
}


@pytest.mark.parametrize("text", IMPORTS)
def test_a_handle_from_another_module(text: str, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "py/other.py").write_text("from .ops import _ops\ngemv = _ops.esimd_gemv_fp16\n")
    (tree / "py/__init__.py").write_text("from .other import gemv\n")
    assert main.main(["apply", "--returns", "void", str(tree)]) == 0
    (tree / "model.py").write_text(f"{text}\n")
    assert found(tree, capsys) == ([(IMPORTS[text], "model.py", True)] if IMPORTS[text] else [])


def test_what_is_no_python_stops_no_other_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "py/a_broken.py").write_text("def f(:\n    return torch.ops.esimd_ops.esimd_rms_norm(x)\n")
    (tree / "py/unrelated.py").write_text("def f(:\n")
    (tree / "py/binary.py").write_bytes(b"\0")
    assert main.main(["apply", "--returns", "void", str(tree)]) == 2
    err = capsys.readouterr().err
    assert "a_broken.py:1:1: error: expected Python, cannot parse it" in err
    assert err.count("a_broken.py") == 1
    assert "binary.py: error: expected Python, found a binary file" in err
    assert "unrelated.py" not in err
    assert "return out" in (tree / "py/ops.py").read_text()
    assert main.main(["check", str(tree)]) == 2


def test_a_result_that_was_more_than_the_buffer(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = REGISTER.replace("float eps) -> Tensor", "float eps) -> (Tensor, Tensor)")
    (tree / "csrc/ops.cpp").write_text(source)
    before = (tree / "py/ops.py").read_bytes()
    assert main.main(["apply", "--returns", "void", str(tree)]) == 1
    assert "ops.py:6:12: error: SP005 esimd_rms_norm" in capsys.readouterr().out
    assert (tree / "py/ops.py").read_bytes() == before


@pytest.mark.parametrize("namespace", ["esimd_ops", "NAMESPACE"])
def test_an_operator_that_still_returns_keeps_its_callers(
    namespace: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that cannot be wrapped, alone and beside a copy that can: which of them runs is not known."""
    left = REGISTER.replace('  m.impl("esimd_rms_norm", &rms_norm);\n', "")
    before = (tree / "py/ops.py").read_bytes()
    (tree / "csrc/ops.cpp").write_text(left)
    assert main.main(["apply", "--returns", "void", str(tree)]) == 2
    assert "esimd_rms_norm: cannot drop its return" in capsys.readouterr().err
    assert (tree / "py/ops.py").read_bytes() == before
    void = (
        REGISTER.replace("esimd_ops", namespace).replace("Tensor output", "Tensor(a!) output").replace('Tensor"', '()"')
    )
    (tree / "csrc/void.cpp").write_text(void)
    assert found(tree, capsys) == []
    (tree / "csrc/ops.cpp").unlink()
    assert found(tree, capsys) == [("SP005", "ops.py", True)]


def test_check_reads_no_python_where_nothing_is_gone(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = files.find

    def find(root: str, suffixes: object = files.SUFFIXES) -> object:
        assert suffixes is not files.PYTHON
        return real(root)

    monkeypatch.setattr(files, "find", find)
    assert main.main(["check", str(tree)]) == 1
    assert main.main(["apply", str(tree)]) == 0
