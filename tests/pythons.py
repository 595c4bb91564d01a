"""The kit without torch under each Python it is for, in a clean environment: installed, asked, and its tests run.

    pythons.py [INTERPRETER...]

By default 3.10 to 3.13, from the path or pyenv, and 3.14 where it is found. Exit code 1 where a test fails, 2 where an
interpreter is missing. For `make test-pythons`; takes some minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WANTED, TRIED = ("3.10", "3.11", "3.12", "3.13"), ("3.14",)
TOOLS = (
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
    "jsonschema",
    "numpy",
    "packaging",
    "pyelftools",
    "pyyaml",
)
OF_TORCH = re.compile(r"^ *(import|from) torch\b", re.MULTILINE)


def find(version: str) -> str | None:
    """An interpreter of this version that starts: pyenv's names on the path stand for what is not chosen, too."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for program in filter(None, (shutil.which(f"python{version}"), *map(str, pyenv))):
        if subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0:
            return program
    return None


def tests() -> list[str]:
    """Those of the tools that need no torch."""
    folders = (ROOT / "tests" / name for name in ("schema_patch", "audit", "platforms"))
    files = [file for folder in folders for file in sorted(folder.glob("test_*.py"))]
    files += [ROOT / "tests" / name for name in ("test_help.py", "test_readme.py")]
    return [str(file.relative_to(ROOT)) for file in files if not OF_TORCH.search(file.read_text("utf-8"))]


def works(program: str, folder: Path) -> bool:
    """Installs both distributions for it and runs the tests against what was installed."""
    run = {"cwd": ROOT, "env": {**os.environ, "ESIMD_OPS_BUILD": "none", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}}
    scripts = folder / "bin"
    for words in (
        [program, "-m", "venv", folder],
        [scripts / "python", "-m", "pip", "install", "--quiet", ROOT, ROOT / "esimd_soak", *TOOLS],
        [scripts / "schema-patch", "--version"],
        [scripts / "esimd-soak", "--version"],
        [scripts / "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", *tests()],
    ):
        if subprocess.run([str(word) for word in words], check=False, **run).returncode:
            return False
    return True


def main(asked: list[str]) -> int:
    found = {name: name for name in asked} or {version: find(version) for version in (*WANTED, *TRIED)}
    told = {}
    for name, program in found.items():
        print(f"== {name}: {program or 'not found'}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            told[name] = "not found" if program is None else "right" if works(program, Path(folder)) else "wrong"
    print(*(f"{name}: {how}" for name, how in told.items()), sep="\n")
    meant = [how for name, how in told.items() if name not in TRIED]
    return 2 if "not found" in meant else int("wrong" in meant)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
