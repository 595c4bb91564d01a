"""The runtime that torch needs decides: the front end of 2026 makes libraries for libsycl.so.9, in its release's form."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from schema_patch.build.driver import runtime
from schema_patch.model import ToolError

from .conftest import DEVICE, SOURCES, UNTOUCHED, run
from .descriptors import Library

sys.path.insert(0, str(Path(__file__).parents[1] / "real"))
import wheels

RELEASE = ("intel-sycl-rt==2026.1.0", "intel-cmplr-lib-rt==2026.1.2", "intel-cmplr-lib-ur==2026.1.2", "umf==1.2.0")


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime of 2026 as pip would lay it out, beside the environment that has 2025.3."""
    folder = tmp_path_factory.mktemp("runtime")
    for requirement in RELEASE:
        with zipfile.ZipFile(wheels.fetch(requirement)) as archive:
            for name in archive.namelist():
                if ".data/data/" in name and not name.endswith("/"):
                    target = folder / name.partition(".data/data/")[2]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))
    return folder


@pytest.mark.real
def test_a_library_for_the_newer_runtime(newer: Path, kernels: Path, tmp_path: Path) -> None:
    words = ("-fsycl", "-fsycl-device-code-split=per_kernel", "-fsycl-targets=spir64_gen,spir64", "-Xs", "-device bmg")
    done = run(*words, SOURCES / "kernels.cpp", "-o", tmp_path / "kernels", SCHEMA_PATCH_SYCL=str(newer))
    assert done.returncode == 0, done.stderr
    images = Library(tmp_path / "kernels").images()
    assert {(image.version, image.section) for image in images} == {(3, "OFFLOAD_DEVICE_CODE")}
    assert {image.target for image in images} == {"spir64", "spir64_gen"}
    needed = subprocess.run(["readelf", "-d", tmp_path / "kernels"], capture_output=True, text=True, check=True).stdout
    assert "libsycl.so.9" in needed
    assert "libsycl.so.8" not in needed
    env = {**UNTOUCHED, "OCL_ICD_FILENAMES": str(DEVICE), "ONEAPI_DEVICE_SELECTOR": "opencl:cpu",
           "LD_LIBRARY_PATH": f"{newer}/lib:{sys.prefix}/lib"}  # fmt: skip
    done = subprocess.run([tmp_path / "kernels"], env=env, capture_output=True, text=True, check=False, timeout=580)
    assert (done.returncode, done.stdout.strip()) == (0, "0 wrong"), done.stdout + done.stderr
    # Objects for one are not linked for the other.
    linked = run("-fsycl", "-fsycl-link", kernels / "kernels.o", "-o", tmp_path / "o.o", SCHEMA_PATCH_SYCL=str(newer))
    assert linked.returncode == 1
    assert "compiled for libsycl.so.8, and this link is for libsycl.so.9" in linked.stderr


def test_a_torch_that_needs_another_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "of_torch", lambda: ("9", "libc10_xpu.so"))
    runtime.find.cache_clear()
    try:
        with pytest.raises(
            ToolError, match=r"torch needs libsycl\.so\.9, and intel-sycl-rt 2025\.3.* has libsycl\.so\.8"
        ):
            runtime.find()
    finally:
        runtime.find.cache_clear()
