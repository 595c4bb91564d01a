"""The SYCL runtime that code is compiled for, and the front end that is part of it.

The runtime that the installed torch was built against decides; without one, the intel-sycl-rt that is installed. torch
is not imported: what its libraries need is read from their files. Knows files and versions; compiles nothing.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schema_patch.elf.sycl import SYCL
from schema_patch.installed.runtime import of_torch
from schema_patch.model import ToolError

PACKAGE = "intel-sycl-rt"
FRONT_END = "libsycl-jit.so"
MISSING = (
    f"no SYCL front end: it is part of the PyPI package {PACKAGE} from 2025.2 on; "
    f"pip install '{PACKAGE}==2025.3.*' for a torch that needs libsycl.so.8"
)
HOME = "SCHEMA_PATCH_SYCL"  # a folder with lib/ and include/ that is used in the place of the package
# Which release of the package has which libsycl.so.N.
RELEASES = {"7": "2024.*", "8": "2025.*", "9": "2026.*"}


@dataclass(frozen=True, slots=True)
class Runtime:
    """`version`: of the package, such as 2025.3.3. `major`: the N of libsycl.so.N."""

    version: str
    major: str
    library: str  # the folder of its libraries
    include: str
    torch: str = ""  # what torch says of it

    @property
    def name(self) -> str:
        return f"libsycl.so.{self.major}"

    @property
    def front_end(self) -> str:
        return os.path.join(self.library, FRONT_END)


@cache
def find() -> Runtime:
    """The runtime to compile for. Raises ToolError where there is none, or it is not torch's."""
    given = os.environ.get(HOME)
    runtime = at(Path(given)) if given else _installed()
    needed = of_torch()[0] if not given else ""  # who names a runtime has asked the torch that it is for
    if needed and needed != runtime.major:
        raise ToolError(
            f"torch needs libsycl.so.{needed}, and {PACKAGE} {runtime.version} has {runtime.name}: what is compiled "
            f"against one cannot be used beside the other; pip install '{PACKAGE}=={RELEASES.get(needed, '*')}'",
            runtime.library,
        )
    _alone(runtime)
    return runtime


def _installed() -> Runtime:
    for distribution in importlib.metadata.distributions(name=PACKAGE):
        for file in distribution.files or ():
            if file.name == FRONT_END:
                # Not resolved: the front end looks for its headers beside the folder that it was loaded from.
                library = Path(os.path.abspath(str(file.locate())))
                return at(library.parents[1], distribution.version)
    raise ToolError(MISSING)


def at(root: Path, version: str = "") -> Runtime:
    """The runtime in a folder with lib/ and include/. Raises ToolError where it is not whole."""
    library, include = root / "lib", root / "include"
    majors = set(filter(None, map(major, os.listdir(library)))) if library.is_dir() else set()
    if not (library / FRONT_END).is_file() or len(majors) != 1:
        raise ToolError(f"expected lib/{FRONT_END} and one libsycl.so.N, found {sorted(majors) or 'none'}", str(root))
    if not (include / "sycl/sycl.hpp").is_file():
        raise ToolError("expected the header include/sycl/sycl.hpp", str(root))
    return Runtime(version or _version(include), majors.pop(), str(library), str(include))


def _version(include: Path) -> str:
    """The release, from the package's record beside it; else the date that its headers have."""
    for record in sorted(include.parent.glob("lib/python3*/site-packages/intel_sycl_rt-*.dist-info")):
        return record.name.removesuffix(".dist-info").partition("-")[2]
    header = include / "sycl/version.hpp"
    text = header.read_text("utf-8", "replace") if header.is_file() else ""
    found = re.search(r"__SYCL_COMPILER_VERSION\s+(\d+)", text)
    return found[1] if found else "unknown"


def path_runtimes(search_path: str) -> tuple[str, ...]:
    """Every libsycl.so.N in the directories of a search path, in its order; a file that has two names counts once."""
    found: dict[str, str] = {}
    for folder in filter(None, search_path.split(os.pathsep)):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if major(name):
                path = os.path.join(folder, name)
                found.setdefault(os.path.realpath(path), path)
    return tuple(found.values())


def major(path: str) -> str:
    """The N of a file libsycl.so.N, or nothing."""
    match = SYCL.fullmatch(os.path.basename(path))
    return match["major"] or "" if match else ""


def _alone(runtime: Runtime) -> None:
    """No other runtime stands on the library path, where it would be loaded in the place of this one."""
    for path in path_runtimes(os.environ.get("LD_LIBRARY_PATH", "")):
        if major(path) != runtime.major:
            raise ToolError(
                f"{os.path.basename(path)} is on LD_LIBRARY_PATH, and {runtime.name} is compiled for: it would be "
                "loaded first; take the folder away from LD_LIBRARY_PATH (sourcing setvars.sh puts it there)",
                os.path.dirname(path),
            )
