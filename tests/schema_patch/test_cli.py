"""The commands as a user types them, on good and on bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nobody
import pytest

from schema_patch.commands import main
from schema_patch.text import files, journal

GOLDEN = Path(__file__).parent.parent / "golden"
WRONG = (GOLDEN / "one_literal" / "in.cc").read_bytes()
RIGHT = (GOLDEN / "one_literal" / "alias.cc").read_bytes()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three files that register known operators and one that does not."""
    root = tmp_path / "tree"
    for name in ("in_place_operands", "literals_cut_anywhere", "crlf_and_latin1"):
        (root / name).mkdir(parents=True)
        shutil.copy(GOLDEN / name / "in.cc", root / name / "ops.cc")
    (root / "other.h").write_text("int f();\n")
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and p.name != journal.NAME
    }


def run(*argv: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "schema_patch", *map(str, argv)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        timeout=60,
    )


def test_check_apply_check_revert(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    assert main.main(["check", str(tree)]) == 1
    assert "SP101 esimd_gemv_int4: writes 'output' undeclared" in capsys.readouterr().out
    assert main.main(["apply", str(tree)]) == 0
    out = capsys.readouterr().out
    assert "+ esimd_norm_add_norm(Tensor h2_raw, Tensor(a!) h1, Tensor w1, Tensor w2, Tensor(b!) out" in out
    assert out.count("cannot be traced by torch.compile without the guard") == 4
    after = contents(tree)
    assert after != before
    assert main.main(["check", str(tree)]) == 0
    assert main.main(["check", "--strict", str(tree)]) == 1
    assert main.main(["apply", str(tree)]) == 0
    assert contents(tree) == after
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before
    assert not (tree / journal.NAME).exists()
    assert main.main(["revert", str(tree)]) == 2


def test_two_runs_are_reverted_together(tree: Path) -> None:
    before = contents(tree)
    assert main.main(["apply", "--ops", "esimd_fused_add_rms_norm", str(tree)]) == 0
    assert main.main(["apply", "--returns", "void", str(tree)]) == 0
    assert main.main(["check", "--strict", str(tree)]) == 0
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before


def test_strip_then_apply_gives_the_bytes_back(tree: Path) -> None:
    assert main.main(["apply", str(tree)]) == 0
    patched = contents(tree)
    assert main.main(["strip", str(tree)]) == 0
    assert all(b"!)" not in data for data in contents(tree).values())
    assert main.main(["apply", str(tree)]) == 0
    assert contents(tree) == patched


def test_diff_writes_nothing(tree: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    before = contents(tree)
    assert main.main(["apply", "--diff", str(tree)]) == 1
    out = capsysbinary.readouterr().out
    assert b'+          "Tensor(a!) o0, Tensor w1' in out
    assert out.endswith(b"\\ No newline at end of file\n") or b"No newline" in out
    assert contents(tree) == before
    assert not (tree / journal.NAME).exists()


def test_the_diff_is_one_that_patch_takes(tree: Path) -> None:
    shutil.copytree(tree, tree.parent / "copy")
    argv = [sys.executable, "-m", "schema_patch", "apply", "--diff", "."]
    diff = subprocess.run(argv, cwd=tree, capture_output=True, check=False).stdout
    subprocess.run(["patch", "-p1", "-s", "--binary"], input=diff, cwd=tree, check=True)
    assert run("apply", ".", cwd=tree.parent / "copy").returncode == 0
    for name in ("in_place_operands", "literals_cut_anywhere", "crlf_and_latin1"):
        assert (tree / name / "ops.cc").read_bytes() == (tree.parent / "copy" / name / "ops.cc").read_bytes()


def test_ops_limits_and_a_wrong_name_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["apply", "--ops", "esimd_gemv_int4,esimd_norm_add_norm", str(tree)]) == 0
    assert b"Tensor(a!) h1" in (tree / "in_place_operands" / "ops.cc").read_bytes()
    assert b"Tensor hidden_states, Tensor residual" in (tree / "in_place_operands" / "ops.cc").read_bytes()
    assert main.main(["apply", "--ops", "esimd_gemv_int", str(tree)]) == 2
    assert "did you mean esimd_gemv_int4?" in capsys.readouterr().err


def test_json(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", "--format", "json", str(tree)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["version"] == 1
    assert report["exit_code"] == 1
    assert report["summary"] == {"wrong": 5}
    finding = next(f for f in report["findings"] if f["op"] == "esimd_gemv_int4")
    assert finding["code"] == "SP101"
    assert finding["fixable"]
    assert finding["line"] == 4
    assert finding["path"].endswith("literals_cut_anywhere/ops.cc")


@pytest.mark.parametrize("what", ["empty", "no C++", "nothing known", "missing", "dangling"])
def test_nothing_checked_is_not_clean(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "t"
    if what != "missing":
        target.mkdir()
    if what == "no C++":
        (target / "a.py").write_bytes(WRONG)
    elif what == "nothing known":
        shutil.copy(GOLDEN / "no_operators_of_ours" / "in.cc", target)
    elif what == "dangling":
        target = tmp_path / "link"
        target.symlink_to(tmp_path / "gone")
    for command in ("check", "apply"):
        assert main.main([command, str(target)]) == 2
        said = capsys.readouterr()
        wanted = {"missing": "no such file or directory", "dangling": "leads nowhere"}.get(what, "nothing verified")
        assert wanted in said.out + said.err


def test_a_file_cut_in_the_middle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for end in (WRONG.rindex(b"eps)"), WRONG.index(b"m.impl"), len(WRONG) - 2):
        file = tmp_path / "cut.cc"
        file.write_bytes(WRONG[:end])
        assert main.main(["apply", str(file)]) == 2
        assert "is the file cut?" in capsys.readouterr().err


def test_a_binary_file_named_cc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cc").write_bytes(b"\x7fELF\0\0" + WRONG)
    (tmp_path / "b.cc").write_bytes(WRONG)
    assert main.main(["apply", str(tmp_path)]) == 2
    assert "a.cc: error: expected C++ source, found a binary file" in capsys.readouterr().err
    assert (tmp_path / "a.cc").read_bytes() == b"\x7fELF\0\0" + WRONG
    assert (tmp_path / "b.cc").read_bytes() == RIGHT  # the next file is done


def test_a_read_only_tree(tree: Path) -> None:
    before = contents(tree)
    for path in (tree, *tree.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    imports = "import fcntl; from schema_patch.commands import main as cli; from schema_patch.report import text as report; from schema_patch.schemas import table; from schema_patch.source import tree; table.load()"
    done = nobody.run(imports, f"sys.exit(cli.main(['apply', {str(tree)!r}]))", tree)
    for path in (tree, *tree.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    assert done.returncode == 2, done.stderr
    assert "no journal, so nothing is written: cannot write: Permission denied" in done.stderr
    assert contents(tree) == before
    assert not list(tree.rglob("*.tmp"))


def test_a_read_only_file(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    target = tree / "in_place_operands" / "ops.cc"
    access = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: access(p, mode) and not (mode == os.W_OK and Path(p) == target))
    before = contents(tree)
    assert main.main(["apply", str(tree)]) == 2
    assert "cannot write: the file is read-only" in capsys.readouterr().err
    assert target.read_bytes() == before["in_place_operands/ops.cc"]
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before


def test_a_full_disk(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 4:  # journal, file, journal, and then the second file
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert main.main(["apply", str(tree)]) == 2
    assert "cannot write: No space left on device; the file is as it was" in capsys.readouterr().err
    after = contents(tree)
    assert sum(after[name] != before[name] for name in before) == 2
    assert set(after) == set(before)  # no temporary file stays
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before


def test_a_file_that_changes_meanwhile(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tree / "in_place_operands" / "ops.cc"
    replace = files.Replacing.replace

    def meddle(self: files.Replacing, file: files.SourceFile, data: bytes, prove: files.Prove | None) -> None:
        if file.real == target:
            target.write_bytes(file.data + b"// edited meanwhile\n")
        replace(self, file, data, prove)

    monkeypatch.setattr(files.Replacing, "replace", meddle)
    assert main.main(["apply", str(tree)]) == 2
    assert "the file changed while it was being patched" in capsys.readouterr().err
    assert target.read_bytes().endswith(b"}\n// edited meanwhile\n")
    assert b"(a!)" not in target.read_bytes()
    monkeypatch.undo()
    assert main.main(["revert", str(tree)]) == 0


def test_a_file_changed_since_is_not_reverted(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tree / "in_place_operands" / "ops.cc"
    before = contents(tree)
    main.main(["apply", str(tree)])
    changed = target.read_bytes() + b"// mine\n"
    target.write_bytes(changed)
    assert main.main(["revert", str(tree)]) == 2
    assert "the file changed since it was patched: not reverted" in capsys.readouterr().err
    assert target.read_bytes() == changed
    assert (tree / "crlf_and_latin1" / "ops.cc").read_bytes() == before["crlf_and_latin1/ops.cc"]
    target.write_bytes(changed[: -len(b"// mine\n")])  # taken out by hand, the rest can go
    assert main.main(["revert", str(tree)]) == 0
    assert contents(tree) == before


def test_a_broken_journal_is_kept(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / journal.NAME).write_text('{"version": 1, "entries": [')
    before = contents(tree)
    for command in ("apply", "revert"):
        assert main.main([command, str(tree)]) == 2
        assert "the journal cannot be read" in capsys.readouterr().err
    assert contents(tree) == before
    (tree / journal.NAME).write_text('{"version": 2, "entries": []}')
    assert main.main(["revert", str(tree)]) == 2
    assert "expected a journal of version 1, found 2" in capsys.readouterr().err


def test_symbolic_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    (root / "real.cc").write_bytes(WRONG)
    (root / "real.cc").chmod(0o640)
    (root / "sub" / "link.cc").symlink_to("../real.cc")
    assert main.main(["apply", str(root)]) == 0
    assert "1 operator changed" in capsys.readouterr().err  # one file, two names
    assert (root / "sub" / "link.cc").is_symlink()
    assert (root / "real.cc").read_bytes() == RIGHT
    assert (root / "real.cc").stat().st_mode & 0o777 == 0o640

    outside = tmp_path / "outside.cc"
    outside.write_bytes(WRONG)
    (root / "sub" / "out.cc").symlink_to(outside)
    assert main.main(["apply", str(root)]) == 2
    assert "leads out of the tree" in capsys.readouterr().err
    assert outside.read_bytes() == WRONG
    assert main.main(["apply", str(root / "sub" / "out.cc")]) == 0  # named, it is followed to its file
    assert outside.read_bytes() == RIGHT
    assert (root / "sub" / "out.cc").is_symlink()


def test_a_schema_inside_a_macro(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.cc"
    shutil.copy(GOLDEN / "macros" / "in.cc", file)
    assert main.main(["apply", str(file)]) == 1
    assert "SP002" in capsys.readouterr().out
    assert file.read_bytes() == (GOLDEN / "macros" / "alias.cc").read_bytes()  # what can be followed, and no more


def test_ctrl_c_in_the_middle_of_ten_files(tmp_path: Path) -> None:
    for i in range(10):
        (tmp_path / f"{i}.cc").write_bytes(WRONG)
    script = (
        "import os, sys, time; from schema_patch.commands import main as cli; from schema_patch.text import files; replace = files.Replacing.replace\n"
        "def slow(*a, written=[]): replace(*a); written.append(a); print('written', flush=True); time.sleep(600 * (len(written) == 3))\n"
        f"files.Replacing.replace = slow; sys.exit(cli.main(['apply', {str(tmp_path)!r}]))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=Path(__file__).parents[2])  # fmt: skip
    assert process.stdout
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2, err
    assert "of 10 files written, each whole; take them back with `schema-patch revert" in err
    states = [(tmp_path / f"{i}.cc").read_bytes() for i in range(10)]
    assert set(states) == {WRONG, RIGHT}
    assert not list(tmp_path.glob("*.tmp"))
    assert main.main(["revert", str(tmp_path)]) == 0
    assert {(tmp_path / f"{i}.cc").read_bytes() for i in range(10)} == {WRONG}


def test_void_wraps_an_implementation_in_another_file(tmp_path: Path) -> None:
    name = "esimd_rms_norm"
    (tmp_path / "def.cc").write_text(
        f'TORCH_LIBRARY(esimd_ops, m) {{ m.def("{name}(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor"); }}\n'
    )
    impl = tmp_path / "impl.cc"
    impl.write_text(f'#include "a.h"\nTORCH_LIBRARY_IMPL(esimd_ops, XPU, m) {{ m.impl("{name}", &norm); }}\n')
    other = tmp_path / "other.cc"
    other.write_text(f'#include "a.h"\nTORCH_LIBRARY_IMPL(someone_else, XPU, m) {{ m.impl("{name}", &norm); }}\n')
    before = contents(tmp_path)
    assert main.main(["apply", "--returns", "void", str(tmp_path)]) == 0
    assert f'm.impl("{name}", drop_return<&norm>)' in impl.read_text()
    assert other.read_text() == before["other.cc"].decode()
    assert main.main(["revert", str(tmp_path)]) == 0
    assert contents(tmp_path) == before


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    modules = "import sys; from schema_patch.commands import main as cli; cli.main(['--help']); print(sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run(
        [sys.executable, "-c", modules], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    ).stdout
    loaded = out.splitlines()[-1]
    assert "'click'" in loaded
    for heavy in ("torch", "lief", "tree_sitter", "rich", "msgspec"):
        assert f"'{heavy}'" not in loaded


def test_a_usage_error_is_exit_2() -> None:
    assert run("apply").returncode == 2
    assert run("aply", "x").returncode == 2
    assert run("check", "--format", "xml", ".").returncode == 2


def test_options_that_ask_for_nothing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(tree)
    assert main.main(["apply", "--ops", "", str(tree)]) == 2
    assert "expected the name of an operator, found none" in capsys.readouterr().err
    assert main.main(["apply", "--diff", "--format", "json", str(tree)]) == 2
    assert contents(tree) == before
    assert main.main(["check", "--ops", "esimd_gemv_fp16", str(tree)]) == 2
    assert "esimd_gemv_fp16: asked for, but not registered" in capsys.readouterr().err
