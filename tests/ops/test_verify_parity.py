"""`verify-schemas --parity` on built libraries: what is wrong by number, beside what is wrong by schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from esimd_ops import native
from esimd_ops.table import OPS
from schema_patch.commands import main

PATIENT = Path(__file__).resolve().parents[2] / "examples/as_shipped"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, extension: object) -> Path:
    """The patient as published, built; beside it the extension whose host functions it binds."""
    tree = tmp_path_factory.mktemp("patient") / "tree"
    shutil.copytree(PATIENT, tree, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "lib"], cwd=tree, check=True)
    (tree / "lib/esimd_ops").symlink_to(native.library_path().parent)
    return next((tree / "lib/custom_esimd_kernels_vllm").glob("*.so"))


def verify(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict]:
    code = main.main_verify([*map(str, words), "--parity", "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_the_patient_as_published(patient, capsys, monkeypatch):
    monkeypatch.delenv("CI", raising=False)  # where it is set torch refuses what it elsewhere compiles wrongly
    code, report = verify(capsys, patient)
    assert code == 1
    run = {row["op"]: row["verdict"] for row in report["checked"] if not row["schema"]}
    assert set(run) == set(OPS)
    assert Counter(run.values()) == {
        "wrong": 37,
        "right, but not compilable without the guard": 7,
        "right": 3,
    }
    codes = Counter(finding["code"] for finding in report["findings"])
    assert codes["SP101"] == codes["PA110"] == 37  # each undeclared write is deleted from the compiled program
    assert codes["PA103"] == sum(len(OPS[op].writes) for op, verdict in run.items() if verdict == "wrong")
    codes.pop("SP301", None)  # a stale compile cache of whoever runs this
    assert set(codes) == {"SP101", "SP105", "PA103", "PA110"}


def test_what_cannot_be_run_is_no_success(patient, tmp_path, capsys):
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "--strip-all", "-o", stripped, patient], check=True)
    broken = tmp_path / "broken.so"
    broken.write_bytes(patient.read_bytes().replace(b"libtorch_cpu.so", b"libtorch_gpu.so"))
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, says in (
        (stripped, "cannot open shared object file"),  # away from what it links; its namespace is told
        (broken, "libtorch_gpu.so: cannot open shared object file"),
        (empty, "found none"),
    ):
        code, report = verify(capsys, path)
        assert code == 2
        assert any("parity not checked" in e["message"] and says in e["message"] for e in report["errors"]), report
