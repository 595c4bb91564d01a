"""What people do with trees: diffs for every spelling of a path, killed runs, huge files, dead branches."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.commands import main
from schema_patch.cpp import regions, registrations
from schema_patch.schemas import table
from schema_patch.source import patch
from schema_patch.text import files, journal
from schema_patch.text.diff import quoted
from schema_patch.text.files import SourceFile

ROOT = Path(__file__).parent.parent.parent
WRONG = '  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");\n'
SOURCE = f"#include <torch/library.h>\nTORCH_LIBRARY(custom_esimd_kernels_vllm, m) {{\n{WRONG}}}\n"
NAMES = ["a.cpp", "with space.cpp", "line\nbreak.cpp", 'quo"te.cpp', "back\\slash.cpp", "tab\there.cpp", "ü.cpp"]


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "-s"]])
@pytest.mark.parametrize("name", NAMES)
def test_a_diff_applies_where_it_was_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    name: str,
    tool: list[str],
) -> None:
    if not shutil.which(tool[0]):
        pytest.fail(f"this test needs {tool[0]}")
    folder = tmp_path / "tree"
    (folder / "csrc").mkdir(parents=True)
    (folder / "csrc" / name).write_text(SOURCE)
    for path, where in ((".", folder), ("csrc", folder), (str(folder), folder), (str(folder), tmp_path / "tree/csrc")):
        monkeypatch.chdir(where)
        main.main(["apply", "--diff", path])
        diff = capfdbinary.readouterr().out
        assert diff.startswith(b"--- ")
        monkeypatch.chdir(where if where == folder else folder)
        if where != folder:  # the tree lies above: names are those within it
            assert b"csrc" in diff.split(b"\n")[0] or where.name == "csrc"
            monkeypatch.chdir(where)
        subprocess.run(tool, input=diff, check=True, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)})
        changed = (folder / "csrc" / name).read_text()
        assert "Tensor(a!) output" in changed
        (folder / "csrc" / name).write_text(SOURCE)


def test_a_tree_elsewhere_is_named_from_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "tree" / "a.cpp").write_text(SOURCE)
    monkeypatch.chdir(tmp_path / "other")
    for path in ("../tree", str(tmp_path / "tree"), "../tree/a.cpp"):
        main.main(["apply", "--diff", path])
        assert capfdbinary.readouterr().out.startswith(b"--- a/a.cpp\n+++ b/a.cpp\n")


def test_names_are_quoted_as_git_does() -> None:
    assert quoted(b"a/b.cpp") == b"a/b.cpp"
    assert quoted(b"a/b c.cpp") == b"a/b c.cpp\t"
    assert quoted(b'a/"\n\x01\\') == b'"a/\\"\\n\\001\\\\"'


def test_a_killed_run_leaves_nothing_behind_a_revert(tmp_path: Path) -> None:
    path = tmp_path / "a.cpp"
    path.write_text(SOURCE)
    assert main.main(["apply", str(tmp_path)]) == 0
    left = [tmp_path / ".a.cpp.abcd1234.tmp", tmp_path / f".{journal.NAME}.abcd1234.tmp"]
    mine = tmp_path / ".a.cpp.notes.tmp"
    for file in (*left, mine):
        file.write_text("x")
    assert main.main(["revert", str(tmp_path)]) == 0
    assert path.read_text() == SOURCE
    assert sorted(tmp_path.iterdir()) == sorted([path, mine])


def test_revert_takes_what_apply_took(tmp_path: Path) -> None:
    paths = [tmp_path / "one.cpp", tmp_path / "two" / "a.cpp"]
    paths[1].parent.mkdir()
    for path in paths:
        path.write_text(SOURCE)
    assert main.main(["apply", *map(str, paths)]) == 0
    assert main.main(["revert", *map(str, paths)]) == 0
    assert [path.read_text() for path in paths] == [SOURCE, SOURCE]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.cpp"
    path.write_text("x")
    os.chown(path, 1234, 4321)
    files.write(path, b"y")
    assert (path.read_bytes(), path.stat().st_uid, path.stat().st_gid) == (b"y", 1234, 4321)


DEAD = f"""#include <torch/library.h>
#if 0
TORCH_LIBRARY(old, m) {{ m.def("cut(Tensor x"
# if 1
#endif
#elif X
#endif
#if 0 // not now
TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {{ {WRONG} }}
#else
TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {{
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> ()");
}}
#endif
"""


def test_what_the_preprocessor_takes_away_is_not_read() -> None:
    unit = patch.examine(SourceFile("a.cpp", Path("a.cpp"), DEAD.encode()), table.load())
    assert [operator.schema.op for operator in unit.operators] == ["esimd_gemv_fp16"]
    assert (unit.errors, unit.findings) == ((), ())


def test_a_huge_file_is_parsed_where_it_registers() -> None:
    filler = b"static int f(int x) { int a[] = {" + b"1, 2, 3, " * 3000 + b"}; return a[x]; }\n"
    data = filler * (regions.LARGE // len(filler) + 1) + SOURCE.encode() + filler
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = registrations.read(data, "a.cpp")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    (registration,) = source.registrations
    at = registration.schema.spans[0].start
    assert data[at:].startswith(b"esimd_rms_norm(")
    assert data[: source.prologue_end].rstrip().endswith(b"#include <torch/library.h>")
    assert grown < 20 * len(data)


def found(root: Path, *named: str) -> list[str]:
    return [os.path.relpath(path, root) for path in files.find(str(root.joinpath(*named)))]


@pytest.fixture
def worked_in(tmp_path: Path) -> Path:
    """A tree after a build: sources, what was generated, and folders of builds by name and by mark."""
    names = "csrc/a.cpp csrc/gen.cpp build/a.cpp csrc/build/b.cpp out/c.cpp made/CMakeFiles/d.cpp made/CMakeCache.txt"
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SOURCE)
    return tmp_path


def test_build_folders_are_left_alone_unless_named(worked_in: Path) -> None:
    assert found(worked_in) == ["csrc/a.cpp", "csrc/gen.cpp", "out/c.cpp"]
    assert found(worked_in, "build") == ["build/a.cpp"]
    assert found(worked_in, "made") == ["made/CMakeFiles/d.cpp"]


def test_what_git_ignores_is_left_alone_unless_named(worked_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (worked_in / ".gitignore").write_text("gen.cpp\n/out/\n")
    git = ["git", "-C", str(worked_in)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "csrc"], check=True)
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as within a hook of another repository
    assert found(worked_in) == ["csrc/a.cpp", "csrc/build/b.cpp"]  # what is tracked is source, whatever its name
    assert found(worked_in, "csrc") == ["csrc/a.cpp", "csrc/build/b.cpp"]
    assert found(worked_in, "out") == ["out/c.cpp"]
    assert found(worked_in, "csrc", "gen.cpp") == ["csrc/gen.cpp"]


def test_a_repository_cannot_have_a_program_started(worked_in: Path) -> None:
    program = worked_in / "program"
    program.write_text(f"#!/bin/sh\ntouch {worked_in}/started\n")
    program.chmod(0o755)
    git = ["git", "-C", str(worked_in)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", str(program)], check=True)
    assert found(worked_in)
    assert not (worked_in / "started").exists()


def test_what_is_shown_of_a_file_name_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb" / "x\x1b[31m\u2028.cpp").write_text(SOURCE)
    (tmp_path / "a\nb" / "cut\r.cpp").write_text("TORCH_LIBRARY(x, m) {")
    for words in (["check"], ["audit", "--strict"], ["apply"], ["revert"]):
        main.main([*words, str(tmp_path)])
        shown = "".join(capfd.readouterr())
        assert "a\\nb/x\\x1b[31m\\u2028.cpp" in shown
        assert not {"\x1b", "\r", "\u2028"} & set(shown)
        assert not [line for line in shown.splitlines() if line.startswith("b/")]


def test_a_name_is_folded_and_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "an_operator_" + "with_a_long_name_" * 6
    code = f'void f(at::Tensor& out) {{ out.zero_(); }}\nTORCH_LIBRARY(n, m) {{ m.def("{name}(Tensor out) -> ()", &f); }}\n'
    (tmp_path / "a.cpp").write_text(code)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    main.main(["audit", str(tmp_path)])
    table_lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert max(map(len, table_lines)) <= 80
    assert "".join(line.split("│")[1].strip() for line in table_lines) == name


@pytest.mark.parametrize("kind", ["pipe", "link", "link to a pipe", "dangling link"])
def test_what_is_no_file_is_written_into_and_stays_what_it_is(kind: str, tmp_path: Path) -> None:
    path, behind = tmp_path / "out", tmp_path / "behind"
    if kind == "link":
        behind.write_bytes(b"old")
    if kind.endswith("pipe"):
        os.mkfifo(behind if "link" in kind else path)
    if "link" in kind:
        path.symlink_to(behind)
    before = os.lstat(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if kind.endswith("pipe") else None
    files.write(path, b"report")
    assert (os.read(reader, 99) if reader is not None else behind.read_bytes()) == b"report"
    if reader is not None:
        os.close(reader)
    assert (os.lstat(path).st_mode, os.lstat(path).st_ino) == (before.st_mode, before.st_ino)


def test_a_report_goes_to_standard_output_by_its_name() -> None:
    words = ["check", str(ROOT / "examples/as_shipped"), "--format", "json", "-o", "/dev/stdout"]
    done = subprocess.run([sys.executable, "-m", "schema_patch", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, "cannot write" in done.stderr) == (1, False)
    assert json.JSONDecoder().raw_decode(done.stdout)[0]["checked"]


def test_who_has_judged_a_tree_is_told_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "with space.cpp"
    path.write_text(SOURCE)
    assert main.main(["check", str(path)]) == 1
    assert f"next: schema-patch apply --diff '{path}' " in capsys.readouterr().err
    assert main.main(["check", "--format", "json", str(path)]) == 1
    assert "next:" not in capsys.readouterr().err
    assert main.main(["apply", str(path)]) == 0
    assert main.main(["check", str(path)]) == 0
    assert "next:" not in capsys.readouterr().err
    assert main.main(["apply", "--diff", str(path)]) == 0
    assert capsys.readouterr() == ("", "nothing to change\n")
    path.write_text('auto registry = torch::RegisterOperators().op("mylib::op", &op);\n')
    assert main.main(["check", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"1 operator in no table: op\nnext: schema-patch audit '{path}' " in told
    path.write_text("int nothing;\n")
    assert main.main(["check", str(path)]) == 2
    assert f"next: schema-patch audit '{path}' " in capsys.readouterr().err
    assert main.main(["check", "--may-be-empty", str(path)]) == 0
    assert "next:" not in capsys.readouterr().err
