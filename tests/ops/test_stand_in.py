"""Where tensors are, operators run: on a device that stands in for a card, in the order of its streams."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

HERE = Path(__file__).parent / "stand_in"


def _sycl(name: str) -> Path:
    files = importlib.metadata.files("intel-sycl-rt") or []
    return next(Path(file.locate()).resolve() for file in files if str(file).endswith(name))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each scenario saw, in one process."""
    library = tmp_path_factory.mktemp("stand_in") / "stand_in.so"
    runtime = _sycl("libsycl.so.8")
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    argv = ["g++", "-std=c++20", "-O0", "-fPIC", "-shared", "-w", *includes,
            "-isystem", str(_sycl("include/sycl/sycl.hpp").parents[1]), str(HERE / "stand_in.cpp"), "-o", str(library),
            f"-L{Path(torch.__file__).parent / 'lib'}", "-lc10", "-ltorch_cpu", f"-L{runtime.parent}",
            "-l:libsycl.so.8", f"-Wl,-rpath,{runtime.parent}"]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    program = [sys.executable, str(HERE / "scenarios.py"), str(library)]
    # A stream that is held back takes a thread of the runtime's.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SYCL_QUEUE_THREAD_POOL_SIZE": "8"}
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=env, timeout=200)
    assert done.returncode == 0, done.stderr
    return {row["scenario"]: row["saw"] for row in map(json.loads, done.stdout.splitlines())}


def test_each_device_gives_the_bits_of_the_cpu(seen: dict[str, dict[str, Any]]) -> None:
    assert len(seen["same_results"]) == 8
    assert all(seen["same_results"].values()), seen["same_results"]


def test_a_call_is_work_of_the_current_stream_and_nobody_waits(seen: dict[str, dict[str, Any]]) -> None:
    assert list(seen["order"].items()) == [
        ("before", True), ("held back", False), ("another stream", True), ("still held back", False), ("let go", True),
    ]  # fmt: skip


def test_temporaries_live_until_the_stream_is_done_with_them(seen: dict[str, dict[str, Any]]) -> None:
    saw = seen["temporaries"]
    counts = {name.partition(":")[0]: saw[name] for name in saw if name.endswith("kept")}
    assert counts == {
        "esimd_rms_norm": [0, 0],
        "esimd_gemm_int4_pgrp": [1, 1],
        "esimd_resadd_norm_gemv_int4_pert": [1, 1],
        "esimd_moe_scatter_fused": [1, 1],
    }
    assert all(saw[name] for name in saw if name.endswith("right")), saw


def test_an_error_of_the_stream_is_told_where_one_waits_and_once(seen: dict[str, dict[str, Any]]) -> None:
    saw = seen["late_errors"]
    assert "planted" in saw["told"]
    assert saw["told once"]
    assert saw["right after"]


def test_what_cannot_be_run_is_refused_in_words(seen: dict[str, dict[str, Any]]) -> None:
    assert "expected a tensor on privateuseone:" in seen["refusals"]["two devices"]
    assert "to run its work in order" in seen["refusals"]["no order"]
