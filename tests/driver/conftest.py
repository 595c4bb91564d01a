"""The driver as build systems call it: a process, with a cache of its own where that matters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCES = Path(__file__).with_name("sources")
TARGETS = ("-fsycl-targets=spir64_gen,spir64", "-Xs", "-device bmg")
DEVICE = Path(sys.prefix) / "lib/libintelocl.so"
UNTOUCHED = {name: value for name, value in os.environ.items() if not name.startswith(("SCHEMA_PATCH_", "MAX_JOBS"))}

Driver = Callable[..., subprocess.CompletedProcess[str]]


def run(*words: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "schema_patch.build.driver", *map(str, words)]
    return subprocess.run(
        argv, cwd=cwd, env={**UNTOUCHED, **environment}, capture_output=True, text=True, check=False, timeout=580
    )


def run_on_cpu(program: Path) -> subprocess.CompletedProcess[str]:
    env = {**UNTOUCHED, "OCL_ICD_FILENAMES": str(DEVICE), "ONEAPI_DEVICE_SELECTOR": "opencl:cpu"}
    return subprocess.run([program], env=env, capture_output=True, text=True, check=False, timeout=580)


@pytest.fixture(scope="session")
def kernels(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with kernels.o, of every kind of kernel, and the program kernels, compiled for the card too."""
    return once("driver-kernels", _compile)


def _compile(folder: Path) -> None:
    words = ("-fsycl", "-g", "-fsycl-device-code-split=per_kernel", "-MD", "-MF", "kernels.d", "-o", "kernels.o")
    done = run("-c", *words, SOURCES / "kernels.cpp", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = run("-fsycl", *TARGETS, "--offload-compress", "kernels.o", "-o", "kernels", cwd=folder)
    assert done.returncode == 0, done.stderr
