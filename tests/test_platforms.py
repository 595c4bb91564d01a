"""Tools that need no torch, where the system is none of POSIX: nothing of it is imported at start, or needed for sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.commands import main

ROOT = Path(__file__).parent.parent
WRONG = """#include <torch/library.h>
TORCH_LIBRARY(custom_esimd_kernels_vllm, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
}
"""
# What Windows has not: modules, functions, a lock on a directory. Its lock on a file is told to stdout.
ELSEWHERE = """
import os, sys, types
for name in ("fcntl", "pwd", "grp", "resource", "termios", "pty"):
    sys.modules[name] = None
for name in ("fork", "chown", "fchown", "killpg", "getuid", "geteuid", "sched_getaffinity", "mkfifo"):
    if hasattr(os, name):
        delattr(os, name)
import click, hashlib, multiprocessing, pathlib, subprocess, tempfile  # which know the system by its name themselves
sys.platform = "win32"
sys.modules["msvcrt"] = types.SimpleNamespace(LK_LOCK=1, locking=lambda *_: print("locked"))
from schema_patch.commands import main
main_ = main.main_verify if sys.argv[1] == "verify-schemas" else main.main
sys.exit(main_(sys.argv[2:] if main_ is main.main_verify else sys.argv[1:]))
"""


def elsewhere(*words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", ELSEWHERE, *map(str, words)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def test_sources_are_judged_patched_and_given_back(tmp_path: Path) -> None:
    file = tmp_path / "a.cpp"
    file.write_text(WRONG)
    assert elsewhere("check", tmp_path).returncode == 1
    done = elsewhere("apply", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "locked"), done.stderr
    assert "Tensor(a!) output" in file.read_text()
    assert elsewhere("check", tmp_path).returncode == 0
    assert elsewhere("revert", tmp_path).returncode == 0
    assert file.read_text() == WRONG
    assert [path.name for path in tmp_path.iterdir()] == ["a.cpp"]


def test_an_audit_and_a_look_at_libraries(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(
        "#include <torch/library.h>\nvoid op(at::Tensor x, at::Tensor out) { out.copy_(x); }\n"
        'TORCH_LIBRARY(mylib, m) { m.def("op(Tensor x, Tensor out) -> ()", &op); }\n'
    )
    done = elsewhere("audit", "--no-cache", tmp_path)
    assert (done.returncode, "SP101 op" in done.stdout) == (1, True), done.stderr
    assert "no operators found" in elsewhere("verify-schemas", tmp_path).stdout


@pytest.mark.parametrize("words", [["doctor"], ["rebuild", "."], ["verify-schemas", "--load", "."]])
def test_what_needs_linux_says_so(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    code = main.main_verify(words[1:]) if words[0] == "verify-schemas" else main.main(words)
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs Linux, found darwin" in line
