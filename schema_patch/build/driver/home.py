"""A folder that looks like an installed compiler, for builds that call `icpx` and look around it.

    python -m schema_patch.build.driver.home DIR        then: . DIR/environment

torch's SyclExtension takes `icpx` from the path, headers and libraries from beside it. A torch built without XPU lacks
three things that a build asks of one with XPU, none of them code that runs: a header with one macro, two libraries to
link with, and the answer that it has XPU. They are there for the build alone. What is built so loads beside such a
torch (absent.py); for a card, build beside a torch with XPU.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from schema_patch.installed.runtime import of_torch
from schema_patch.model import ToolError

from . import absent
from .runtime import Runtime, find

PROGRAMS = ("icpx", "icx", "dpcpp")
HEADER = "c10/xpu/impl/xpu_cmake_macros.h"
LIBRARIES = ("c10_xpu", "torch_xpu")
PATHS = {"PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "PYTHONPATH"}
EMPTY_ARCHIVE = b"!<arch>\n"
PROGRAM = """\
#!{python}
import sys

sys.path.insert(0, {root!r})
from schema_patch.build.driver.main import main

sys.exit(main(sys.argv[1:]))
"""
ANSWERS = """\
import importlib.abc
import importlib.util
import sys
from contextlib import nullcontext


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch.xpu":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def answered(module):
            run(module)
{answers}

        spec.loader.exec_module = answered
        return spec


sys.meta_path.insert(0, Finder())
"""
# So that its SyclExtension compiles; it still finds no device.
COMPILED = {"_is_compiled": "True", "device_count": "0", "is_available": "False"}


def create(folder: Path, runtime: Runtime, *, xpu: bool) -> dict[str, str]:
    """Fills a folder and returns the variables of a build that uses it; those of paths are to be put before others.

    `xpu`: whether the torch that is built against has it.
    """
    folder = folder.resolve()
    try:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            _program(folder / "bin" / name)
        for name, target in (("include", runtime.include), ("lib", runtime.library)):
            if (folder / name).is_symlink():
                (folder / name).unlink()
            (folder / name).symlink_to(target)
    except OSError as error:
        raise ToolError(f"cannot write: {error.strerror}", str(error.filename or folder)) from error
    # The linker is the host's: told where icpx's own library folder is, it finds -lsycl.
    variables = {"PATH": str(folder / "bin"), "CMPLR_ROOT": str(folder), "SYCL_HOME": str(folder),
                 "LIBRARY_PATH": str(folder / "lib")}  # fmt: skip
    if not xpu:
        variables = joined(_without_xpu(folder / "torch"), variables)
    return variables


def answers(given: Mapping[str, str]) -> str:
    """A sitecustomize.py with which torch.xpu gives these answers, each an expression, whatever it is asked with."""
    return ANSWERS.format(
        answers="\n".join(f"            module.{name} = lambda *_: {it}" for name, it in given.items())
    )


def joined(variables: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """An environment with these variables, search paths put before those that are there."""
    found = dict(inherited)
    for name, value in variables.items():
        before = inherited.get(name) if name in PATHS else None
        found[name] = f"{value}{os.pathsep}{before}" if before else value
    return found


def _program(path: Path) -> None:
    root = str(Path(__file__).resolve().parents[3])
    path.write_text(PROGRAM.format(python=sys.executable, root=root))
    path.chmod(0o755)


def _without_xpu(folder: Path) -> dict[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    header = folder / "include" / HEADER
    header.parent.mkdir(parents=True)
    header.write_text("#pragma once\n#define C10_XPU_BUILD_SHARED_LIBS\n")
    (folder / "lib").mkdir()
    for name in LIBRARIES:
        (folder / "lib" / f"lib{name}.a").write_bytes(EMPTY_ARCHIVE)
    (folder / "python").mkdir()
    (folder / "python" / "sitecustomize.py").write_text(answers(COMPILED))
    return {
        "CPLUS_INCLUDE_PATH": str(folder / "include"),
        "LIBRARY_PATH": str(folder / "lib"),
        "PYTHONPATH": str(folder / "python"),
        absent.VARIABLE: "1",
    }


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m schema_patch.build.driver.home DIR", file=sys.stderr)
        return 2
    folder = Path(argv[0])
    try:
        variables = create(folder, find(), xpu=bool(of_torch()[0]))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    lines = []
    for name, value in variables.items():
        more = f"${{{name}:+:${name}}}" if name in PATHS else ""
        lines.append(f"export {name}={shlex.quote(value)}{more}\n")
    (folder / "environment").write_text("".join(lines))
    print(folder / "environment")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
