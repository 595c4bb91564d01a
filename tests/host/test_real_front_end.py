"""The test kernels and the examples compile, unchanged, with the DPC++ front end of `intel-sycl-rt`: the spelling is the real one.

No device that runs ESIMD is needed: compiling is all that is asked. The slowest of these tests: each source takes seconds.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "esimd"
# Which has sycl::atomic_ref and atomic_fence in ESIMD kernels, as the host allows; the front end refuses them there.
ONLY_HOST = {"orders.sycl"}
KERNELS = [*sorted((HERE / "tree").glob("*.sycl")), *sorted(EXAMPLES.glob("*.sycl"))]
SOURCES = [path for path in KERNELS if path.name not in ONLY_HOST]


def installed(distribution: str, name: str) -> Path:
    files = importlib.metadata.files(distribution) or []
    return next(Path(str(file.locate())).resolve() for file in files if file.name == name)


@pytest.fixture(scope="session")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = installed("intel-sycl-rt", "libsycl.so.8")
    header = installed("intel-sycl-rt", "sycl.hpp")
    program = tmp_path_factory.mktemp("front_end") / "front_end"
    command = [
        "g++",
        "-std=c++20",
        "-O0",
        "-w",
        HERE / "front_end.cpp",
        "-o",
        program,
        f"-I{header.parents[1]}",
        library,
    ]
    subprocess.run([*map(str, command), f"-Wl,-rpath,{library.parent}"], check=True)
    return program


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_compiles_unchanged(front_end: Path, source: Path) -> None:
    assert len(SOURCES) == 8
    headers = sorted(source.parent.glob("*.h"))
    environment = {**os.environ, "OCL_ICD_FILENAMES": str(installed("intel-opencl-rt", "libintelocl.so"))}
    done = subprocess.run(
        [str(front_end), str(source), *map(str, headers)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "error" not in done.stdout


def test_a_wrong_spelling_does_not(front_end: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.sycl"
    wrong.write_text(SOURCES[0].read_text().replace("block_store<float", "block_stor<float", 1))
    environment = {**os.environ, "OCL_ICD_FILENAMES": str(installed("intel-opencl-rt", "libintelocl.so"))}
    done = subprocess.run(
        [str(front_end), str(wrong), str(HERE / "tree" / "pieces.h")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "block_stor" in done.stderr
