"""Intel's own kernels, where LLM_SCALER names a checkout: all 47 operators build, agree with the references, and the races
that are known of them are found. Building takes minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.schemas import table as tables

CHECKOUT = os.environ.get("LLM_SCALER")
TREE = Path(CHECKOUT or "") / "vllm" / "custom-esimd-kernels-vllm"
NAMESPACE = "custom_esimd_kernels_vllm"

pytestmark = [
    pytest.mark.skipif(not CHECKOUT, reason="set LLM_SCALER to a checkout of intel/llm-scaler"),
    pytest.mark.timeout(3600),
]


def esimd_ops(*words: str | Path, build: Path | None = None) -> tuple[int, str, str]:
    path = os.pathsep.join(filter(None, [str(build or ""), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "esimd_ops", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def built(out: Path, *more: str) -> Path:
    code, _, errors = esimd_ops("host-build", TREE, "-o", out, "--only", "csrc/xpu/*", *more)
    assert code == 0, errors
    return out


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("fast"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("watched"), "--checks")


def test_all_47_agree_with_the_references(fast: Path) -> None:
    words = ("check", "--namespace", NAMESPACE, "--device", "cpu", "--repeat", "2", "--format", "json")
    _, out, errors = esimd_ops(*words, build=fast)
    report = json.loads(out)
    assert len(report["checked"]) == 47, errors
    # What schemas do not say (PA103, PA110, SP…) is another matter; this kernel rounds its weights to half, as documented.
    numbers = {(f["op"], f["code"]) for f in report["findings"] if f["code"] not in ("PA103", "PA110", "SP105")}
    assert numbers == {("esimd_gemm_int4_pgrp", "PA101")}


RACES = {
    # operator: (code, tensor) of what is known of it
    "esimd_resadd_norm_gemv_fp8_pert": ("HR101", "residual"),
    "esimd_resadd_norm_gemv_int4_pert": ("HR101", "residual"),
    "esimd_gdn_conv_fused": ("HR101", "conv_state"),
    "esimd_gdn_conv_fused_seq": ("HR101", "conv_state"),
}


def test_the_known_races_are_found(watched: Path) -> None:
    words = ("races", "--namespace", NAMESPACE, "--ops", ",".join([*RACES, "esimd_rms_norm", "esimd_gemv_fp16"]))
    code, out, errors = esimd_ops(
        *words, "--shapes", "all", "--schedules", "descending;ascending", "--format", "json", build=watched
    )
    assert code == 1, errors
    findings = json.loads(out)["findings"]
    found = {(f["op"], f["code"]) for f in findings if f["code"] in ("HR101", "HR102", "HR103")}
    for op, (kind, tensor) in RACES.items():
        assert any((f["op"], f["code"]) == (op, kind) and f"'{tensor}'" in f["message"] for f in findings), (op, found)
    assert ("esimd_resadd_norm_gemv_int4_pert", "HR103") in found  # dot products over sums of squares, in SLM
    assert not {op for op, _ in found} & {"esimd_rms_norm", "esimd_gemv_fp16"}


REPLACED = """
import sys
import torch
from esimd_ops import guard
from esimd_ops.races.schedules import NAMED
from esimd_ops.races.watch import Runtime
from esimd_ops.table import OPS
from esimd_ops.trials.subject import OfTable
import custom_esimd_kernels_vllm

CASES = {
    "esimd_resadd_norm_gemv_fp8_pert": "256x2048",
    "esimd_resadd_norm_gemv_int4_pert": "256x2048",
    "esimd_scaled_resadd_norm_gemv_fp8_pert": "256x2048",
    "esimd_gdn_conv_fused": "4x4x8",
    "esimd_gdn_conv_fused_seq": "4x4x8",
    "esimd_gdn_conv_fused_seq_spec": "2x3x8x16",
}
runtime = Runtime.loaded()

def wrong(op, schedule):
    subject = OfTable(OPS[op])
    runtime.schedule(NAMED[schedule])
    arguments = subject.make(CASES[op])
    with torch.no_grad():
        getattr(torch.ops.custom_esimd_kernels_vllm, op)(*arguments.values())
    return max(subject.truth(subject.make(CASES[op])).shares({n: arguments[n] for n in subject.writes}).values())

before = {op: wrong(op, "20 resident") for op in CASES}
assert all(share > 0.1 for share in before.values()), before
guard.enable("custom_esimd_kernels_vllm", replace="races")
after = {op: max(wrong(op, name) for name in NAMED) for op in CASES}
assert not any(after.values()), after
told = {one.op.partition("::")[2]: (one.calls, one.passed) for one in guard.status().replaced}
assert told == dict.fromkeys(CASES, (len(NAMED), 0)), told
"""


def test_with_the_kits_operators_in_their_place_they_are_right_under_every_schedule(fast: Path) -> None:
    path = os.pathsep.join(filter(None, [str(fast), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", REPLACED]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_37_are_found_by_watching_a_program_that_calls_them(fast: Path, tmp_path: Path) -> None:
    words = (
        "observe",
        "--namespace",
        NAMESPACE,
        "--namespace",
        "esimd_topk_v2",
        "-o",
        tmp_path / "seen.toml",
        "--format",
        "json",
    )
    program = Path(__file__).parent / "all_samples.py"
    _, out, errors = esimd_ops(*words, "--", program, NAMESPACE, build=fast)
    report = json.loads(out)
    wrong = {row["op"].partition("::")[2] for row in report["checked"] if row["verdict"] == "wrong"}
    known = tables.everything().entries
    assert len({op for op in wrong if known[op].writes or known[op].inplace}) == 37, errors
    seen = tables.read_file(tmp_path / "seen.toml").entries
    for op, entry in seen.items():
        assert set(entry.writes) == {*known[op].writes, *known[op].inplace}, op
        assert entry.returns == known[op].returns, op
