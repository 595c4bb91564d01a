"""Copies of this repository and what is built of them, for the tests of the wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schema_patch", "esimd_ops")


def files() -> list[str]:
    """All files of the repository but those that git ignores."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


def clone(target: Path) -> Path:
    """A copy of them, as a fresh clone has them."""
    for name in files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    return target


def elsewhere(tree: Path, target: Path) -> Path:
    """The same files in another place, from another time, without what a build has left among them."""
    shutil.copytree(tree, target, ignore=shutil.ignore_patterns("*.egg-info"))
    for left in ("build", "dist"):
        shutil.rmtree(target / left, ignore_errors=True)
    for path in target.rglob("*"):
        os.utime(path, (1.5e9, 1.5e9))
    return target


def run(*argv: str | Path, mode: str = "none", cwd: Path | None = None) -> str:
    """What a command prints; a failure shows all of it."""
    env = {**os.environ, "ESIMD_OPS_BUILD": mode, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "MAX_JOBS": "2"}
    env.pop("SOURCE_DATE_EPOCH", None)
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sdist(tree: Path, into: Path) -> Path:
    program = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", program, into, cwd=tree)
    (found,) = into.glob("*.tar.gz")
    return found


def wheel(source: Path, into: Path, mode: str, *flags: str) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", into, *flags, source, mode=mode)
    (found,) = into.glob("*.whl")
    return found


def environment(folder: Path, *requirements: str | Path) -> Path:
    """The scripts of a fresh virtual environment with these installed, and what they depend on."""
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", *requirements)
    run(folder / "bin/python", "-m", "pip", "check")
    return folder / "bin"


def requirements(path: Path) -> list[str]:
    """What a wheel's metadata say that it depends on, without its extras."""
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    return [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
