"""Tools that need no torch, where the system is none of POSIX: they do there what they do here."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import schema_patch
from schema_patch.commands import main

ROOT = Path(__file__).parents[2]
INPUTS = ("tests/golden", "examples/as_shipped/csrc", "tests/driver/tree")
SOURCE = """
#include <stdint.h>
int aoti_torch_library_init_def(const char *, const char *, uint32_t, void **);
int aoti_torch_library_def(void *, const char *);
__attribute__((constructor)) static void registers(void) {
  void *library;
  aoti_torch_library_init_def("custom_esimd_kernels_vllm", "x.cpp", 1, &library);
  aoti_torch_library_def(library,
    "esimd_fused_add_rms_norm(Tensor hidden_states, Tensor residual, Tensor weight, float eps) -> ()");
}
"""
Done = tuple[int, bytes, dict[str, bytes]]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources of this suite with a name that no Western console has, a library that lies, and its wheel."""
    folder = tmp_path_factory.mktemp("inputs")
    for name in INPUTS:
        shutil.copytree(ROOT / name, folder / "tree" / name)
    shutil.copytree(ROOT / INPUTS[1], folder / "tree" / "核 ü")
    lying = "void op(at::Tensor x, at::Tensor out) { out.copy_(x); }\nTORCH_LIBRARY(m, m) { m.def(\"op(Tensor x, Tensor out) -> ()\", &op); }\n"  # fmt: skip
    (folder / "tree" / "lying.cpp").write_text(f"#include <torch/library.h>\n{lying}")
    (folder / "lib").mkdir()
    command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", folder / "lib/libx.so"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    with zipfile.ZipFile(folder / "x-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.write(folder / "lib/libx.so", "x/libx.so")
        wheel.writestr("x-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: x\nVersion: 1.0\n")
        wheel.writestr("x-1.0.dist-info/RECORD", "x/libx.so,,\nx-1.0.dist-info/METADATA,,\nx-1.0.dist-info/RECORD,,\n")
    return folder


def here(folder: Path, words: list[str], given: bytes, capfdbinary: pytest.CaptureFixture[bytes]) -> Done:
    program = main.main_verify if words[0] == "verify-schemas" else main.main
    code = program(words[1:])
    said = capfdbinary.readouterr().out
    if "--diff" not in words:  # which has the bytes of the file
        said = said.decode().encode("cp1252", "backslashreplace")
    return code, said, files(folder)


def elsewhere(folder: Path, words: list[str], given: bytes) -> Done:
    argv = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
    argv += [str(Path(__file__).with_name("elsewhere.py")), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(schema_patch.__file__).parents[1])}
    done = subprocess.run(argv, cwd=folder, env=environment, input=given, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout, files(folder)


# Steps of one story each; what one leaves, the next one finds.
STORIES = {
    "sources": ["schema-patch check .", "schema-patch apply --diff .", "schema-patch apply .", "schema-patch check --format json .",
                "schema-patch strip .", "schema-patch revert ."],
    "void": ["schema-patch apply --returns void .", "schema-patch check --format sarif -o check.sarif .", "schema-patch revert ."],
    "inferred": ["schema-patch audit --no-cache .", "schema-patch audit --write-baseline known .", "schema-patch audit --baseline known .",
                 "schema-patch apply --infer .", "schema-patch revert ."],
    "installed": ["verify-schemas .", "schema-patch apply --diff libx.so", "schema-patch apply libx.so",
                  "verify-schemas --format html -o v.html libx.so", "schema-patch revert libx.so"],
    "wheel": ["verify-schemas x-1.0-py3-none-any.whl", "verify-schemas -", "schema-patch apply --wheel-out out x-1.0-py3-none-any.whl",
              "verify-schemas out/x-1.0+schemas-py3-none-any.whl", "verify-schemas x-1.0-py3-none-any.whl --against out/x-1.0+schemas-py3-none-any.whl"],
    "serving": ["schema-patch splitting-ops"],
}  # fmt: skip
OF = {"void": "tree/examples/as_shipped/csrc", "installed": "lib", "wheel": "", "serving": ""}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_done_elsewhere_is_what_is_done_here(
    story: str,
    inputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    wheel = (inputs / "x-1.0-py3-none-any.whl").read_bytes()
    told: list[list[Done]] = []
    for run in (lambda *words: here(*words, capfdbinary), elsewhere):
        folder = tmp_path / "work"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(inputs / OF.get(story, "tree"), folder)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(wheel))))
        told.append([run(folder, words.split(), wheel) for words in STORIES[story]])
    for words, (code, said, left), (other_code, other_said, other_left) in zip(STORIES[story], *told, strict=True):
        assert other_code == code, words
        assert other_said == said, words
        assert other_left == left, words
        assert code in (0, 1), words
    assert b"wrong" in told[0][0][1] or story in ("serving", "void")


@pytest.mark.parametrize("words", [["doctor"], ["rebuild", "."], ["verify-schemas", "--load", "."]])
def test_what_needs_linux_says_so(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    code = main.main_verify(words[1:]) if words[0] == "verify-schemas" else main.main(words)
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs Linux, found darwin" in line
