"""The kit's own operators as they were built for the card, run here: from the SPIR-V of the same library, on the CPU device.

`make bmg` runs this on the wheel that it has made. Device xpu is a stand-in (xpu.cpp): kernels, launches and host code are
those of the library. What stays unseen without a card is the machine code at work.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from esimd_ops import native
from esimd_ops.table import OPS
from schema_patch.build.driver import home

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PREFIX = Path(sys.prefix)
TORCH = Path(torch.__file__).parent
PATHS = ("-isystem", TORCH / "include", "-isystem", PREFIX / "include", f"-L{TORCH / 'lib'}", f"-L{PREFIX / 'lib'}",
         f"-Wl,-rpath,{TORCH / 'lib'}:{PREFIX / 'lib'}")  # fmt: skip
# As torch.xpu answers where a device is there.
PRESENT = {"is_available": "True", "_lazy_init": "None", "synchronize": "None", "Stream": "None", "stream": "nullcontext()",
           "device_count": "1", "current_device": "0"}  # fmt: skip


def compiled(folder: Path, name: str, *words: str | Path) -> Path:
    library = folder / f"lib{name}.so"
    argv = ["clang++-19", "-std=c++20", "-w", "-O1", "-shared", "-fPIC", "-fvisibility-inlines-hidden",
            HERE / f"{name}.cpp", *words, "-o", library]  # fmt: skip
    subprocess.run(argv, check=True)
    return library


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("native")
    compiled(folder, "launches")
    # A header that only a torch with XPU has: as for the build of the library itself.
    headers = ROOT / "build/compiler/torch/include"
    compiled(folder, "xpu", f"-I{headers}", *PATHS, "-ltorch_cpu", "-lc10", "-lsycl")
    (wheel,) = (ROOT / "build/bmg").glob("*.whl")  # `make bmg` builds it
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "present").mkdir()
    (folder / "present/sitecustomize.py").write_text(home.answers(PRESENT))
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> Path:
    (library,) = (folder / "esimd_ops").glob("_C*.so")
    return library


def run(folder: Path, *words: str | Path, xpu: bool, **variables: str) -> subprocess.CompletedProcess[str]:
    preloaded = [folder / "liblaunches.so", *([folder / "libxpu.so"] if xpu else [])]
    paths = [*([folder / "present"] if xpu else []), ROOT]
    env = {**os.environ, **variables, "LD_PRELOAD": ":".join(map(str, preloaded)), "PYTHONPATH": os.pathsep.join(map(str, paths)),
           "ONEAPI_DEVICE_SELECTOR": "opencl:cpu"}  # fmt: skip
    return subprocess.run(
        [sys.executable, *map(str, words)], env=env, capture_output=True, text=True, check=False, timeout=580
    )


def test_every_operator_computes_what_the_table_says(folder: Path, library: Path) -> None:
    words = ("-m", "esimd_ops", "check", "--namespace", "esimd_ops", "--library", library, "--device", "xpu", "--quick")
    done = run(folder, *words, xpu=True, LAUNCHES=os.devnull)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(OPS)} operators: {len(OPS)} right" in done.stdout + done.stderr


def launches(folder: Path, library: Path, device: str) -> dict[str, list[object]]:
    """Of each call: the launches that it made, addresses by the order in which they were first seen."""
    record = folder / f"{device}.jsonl"
    done = run(folder, HERE / "child.py", "esimd_ops", device, library, xpu=device == "xpu", LAUNCHES=str(record))
    assert done.returncode == 0, done.stderr
    calls: dict[str, list[object]] = {}
    for row in map(json.loads, record.read_text().splitlines()):
        if "of" in row:
            label, seen = row["of"], {}
            calls[label] = []
            continue
        row["arguments"] = [
            (kind, seen.setdefault(value, len(seen)) if kind == "address" else value)
            for kind, value in row["arguments"]
        ]
        if re.search("norm|gdn|mul", label.split()[0]):
            del row["locals"]  # one sub-group on the CPU, on a card as many as the row fills
        calls[label].append(row)
    return calls


def test_both_builds_launch_alike(folder: Path, library: Path) -> None:
    """The build for the CPU and the one for the card: the same groups of the same size, with the same arguments."""
    host = launches(folder, native.library_path(), "cpu")
    card = launches(folder, library, "xpu")
    assert sum(map(len, host.values())) > len(OPS) * 5
    assert len({label.split()[0] for label, rows in host.items() if rows}) == len(OPS)
    assert card == host
