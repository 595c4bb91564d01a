"""The native wheel of the kit: built twice, looked into, and tried in a fresh environment. For `make test-wheels`.

Takes two whole builds and an installation of torch, so it is not among the tests that run by themselves. TORCH: what to
install for torch in the fresh environment, as the Makefile has it; by default the version that is here.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from schema_patch.elf import reader

from . import checkout

TORCH = metadata.version("torch")
PROGRAM = """
import torch
from esimd_ops import native
extension = native.load()
torch.manual_seed(0)
x, weight = torch.randn(4, 256).half(), torch.randn(256).half()
output = torch.empty_like(x)
torch.ops.esimd_ops.esimd_rms_norm(x, output, weight, 1e-6)
wanted = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()
torch.testing.assert_close(output.float(), wanted, rtol=2e-3, atol=2e-3)
print(native.__file__, extension.build_mode, torch.__version__)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout.clone(tmp_path_factory.mktemp("a") / "clone")


@pytest.fixture(scope="module")
def from_sdist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With build isolation, which hides torch: setup.py finds it."""
    base = tmp_path_factory.mktemp("sdist")
    return checkout.wheel(checkout.sdist(clone, base / "dist"), base / "wheel", "host")


@pytest.fixture(scope="module")
def from_tree(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("tree")
    tree = checkout.elsewhere(clone, base / "another clone")
    return checkout.wheel(tree, base / "wheel", "host", "--no-build-isolation")


def library(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return Path(archive.extract(name, folder))


def test_what_it_is_called_and_what_it_needs(from_sdist: Path) -> None:
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert from_sdist.name.endswith(f"-{python}-{python}-linux_x86_64.whl")
    native = [name for name in checkout.requirements(from_sdist) if name.startswith(("torch", "intel"))]
    assert native == [f"torch=={TORCH.partition('+')[0]}", "intel-sycl-rt==2025.3.*", "intel-opencl-rt==2025.3.*"]


def test_two_builds_are_the_same_bytes(from_sdist: Path, from_tree: Path) -> None:
    with zipfile.ZipFile(from_sdist) as first, zipfile.ZipFile(from_tree) as second:
        assert first.namelist() == second.namelist()
        differing = [name for name in first.namelist() if first.read(name) != second.read(name)]
    # Isolation takes the newest setuptools, which signs its work in WHEEL.
    assert [name for name in differing if not name.endswith((".dist-info/WHEEL", ".dist-info/RECORD"))] == []
    assert differing or from_sdist.read_bytes() == from_tree.read_bytes()


def test_nothing_of_this_machine_is_in_it(from_sdist: Path, tmp_path: Path) -> None:
    path = library(from_sdist, tmp_path)
    facts = reader.read(path)
    assert facts.runpath == "$ORIGIN/../torch/lib:$ORIGIN/../../.."
    assert [name for name in facts.needed if "sycl" in name] == ["libsycl.so.8"]
    folders = {sys.prefix, sys.base_prefix, str(Path.home()), str(checkout.ROOT), "/tmp/pip-", "/tmp/pytest"}
    data = path.read_bytes()
    assert [folder for folder in folders if re.search(re.escape(folder).encode() + rb"[/\w-]", data)] == []
    # Paths of the machine whose compiler made libstdc++ and libgcc are none of ours.
    assert b"site-packages/torch/include/" in data


def test_it_works_elsewhere_with_what_it_says_it_needs(from_sdist: Path, tmp_path: Path) -> None:
    torch = shlex.split(os.environ.get("TORCH") or f"torch=={TORCH.partition('+')[0]}")
    scripts = checkout.environment(tmp_path / "venv", *torch, from_sdist)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OCL", "SYCL", "LD_", "PYTHON"))}
    done = subprocess.run(
        [scripts / "python", "-c", PROGRAM], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where, mode, _ = done.stdout.split()
    assert (Path(where).is_relative_to(tmp_path), mode) == (True, "host")
    verify = [scripts / "verify-schemas", tmp_path / "venv/lib", "--require", "esimd_gemv_int4"]
    done = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "47 operators: 47 right" in done.stdout
