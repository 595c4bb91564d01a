"""The pure kit: sdist, wheel, and a fresh environment with what the wheel says it needs. Native wheels: wheels.py."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from . import checkout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout.clone(tmp_path_factory.mktemp("a") / "clone")


@pytest.fixture(scope="module")
def sdist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout.sdist(clone, tmp_path_factory.mktemp("built") / "dist")


@pytest.fixture(scope="module")
def built(sdist: Path) -> Path:
    """From the sdist, with build isolation."""
    return checkout.wheel(sdist, sdist.parents[1] / "wheel", "none")


def test_the_sdist_is_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    made = {"PKG-INFO", "setup.cfg", *(name for name in held if ".egg-info/" in name)}
    assert held - made == {name for name in checkout.files() if not name.startswith((".ci/", ".gitignore"))}


def test_it_is_for_every_machine(built: Path) -> None:
    assert built.name.endswith("-py3-none-any.whl")
    assert not [name for name in checkout.requirements(built) if name.startswith(("torch", "intel"))]
    assert [name for name in checkout.requirements(built) if name.startswith("click")]


def test_it_holds_every_file_of_the_packages(clone: Path, built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    found = [path for package in checkout.PACKAGES for path in (clone / package).rglob("*") if path.is_file()]
    expected = {path.relative_to(clone).as_posix() for path in found if "__pycache__" not in path.parts}
    assert sorted(expected - held) == []
    assert sorted(held - expected) == []


def test_a_clone_elsewhere_without_isolation_gives_the_same_bytes(clone: Path, built: Path, tmp_path: Path) -> None:
    other = checkout.wheel(
        checkout.elsewhere(clone, tmp_path / "another clone"), tmp_path / "wheel", "none", "--no-build-isolation"
    )
    with zipfile.ZipFile(built) as first, zipfile.ZipFile(other) as second:
        assert first.namelist() == second.namelist()
        differing = [name for name in first.namelist() if first.read(name) != second.read(name)]
    # Isolation takes the newest setuptools, which signs its work in WHEEL.
    assert [name for name in differing if not name.endswith((".dist-info/WHEEL", ".dist-info/RECORD"))] == []
    assert differing or built.read_bytes() == other.read_bytes()


GUARD = f"""
import sys
sys.path.append({sysconfig.get_path("purelib")!r})  # torch, which a pure kit does not bring
import torch
from esimd_ops import guard
lib = torch.library.Library("mylib", "DEF")
lib.define("fill(Tensor x, Tensor out) -> ()")
lib.impl("fill", lambda x, out: [out.copy_(x)] and None, "CPU")
lib.impl("fill", lambda x, out: None, "Meta")
print(guard.enable("mylib", writes={{"fill": "out"}}))
def program(x):
    out = torch.zeros_like(x)
    torch.ops.mylib.fill(x, out)
    return out + 1
x = torch.randn(4)
assert torch.equal(torch.compile(program, backend="aot_eager")(x), x + 1)
"""


def test_it_works_with_what_it_says_it_needs(built: Path, tmp_path: Path) -> None:
    scripts = checkout.environment(tmp_path / "venv", built)
    patient = checkout.ROOT / "examples/as_shipped"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for words, code, said in (
        (["schema-patch", "--version"], 0, "pure Python"),
        (["schema-patch", "check", patient], 1, "37 wrong"),
        (["schema-patch", "check", patient], 1, "SP101: undeclared write: the operator writes"),  # it has no pages
        (["python", "-c", GUARD], 0, "mylib"),
        (["verify-schemas", built], 2, "no operators found"),
        (["schema-patch", "doctor", "--for", "xpu"], 1, "no torch in"),
        (["schema-patch", "rebuild", patient, "--out", tmp_path / "out"], 2, "no torch in"),
        (["python", "-c", "from esimd_ops import native; native.library_path()"], 1, "without its native extension"),
    ):
        argv = [scripts / words[0], *words[1:]]
        done = subprocess.run(argv, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert said in done.stdout + done.stderr
        assert "docs/" not in done.stdout + done.stderr
