"""The host side of a source, compiled by clang with the headers that the front end wrote.

clang, and not g++: host code asks for a kernel by a name that only a compiler can give an unnamed lambda
(__builtin_sycl_unique_stable_name, which clang has and g++ has not), and Intel's ESIMD headers use its vectors.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from schema_patch.model import ToolError

from . import integration, layouts, objects, processes
from .options import Compilation
from .runtime import Runtime

VARIABLE = "SCHEMA_PATCH_CLANG"
OLDEST = 18  # the first that knows -fsycl-is-host and the headers' C++
NEWEST_KNOWN = 22
NAMES = ("clang++", *(f"clang++-{version}" for version in range(NEWEST_KNOWN, OLDEST - 1, -1)))
LAYOUTS = "layouts"
RECIPE = "apt-get install clang-19"
# What icpx does where nothing else is said: its standard, and attributes in the form that Windows has.
STANDARD = "-std=gnu++17"
DECLSPEC = "-fdeclspec"


@cache
def find() -> tuple[str, str]:
    """Path and version of the host compiler. Raises ToolError where there is none, or only older ones."""
    given = os.environ.get(VARIABLE)
    old = []
    for name in (given,) if given else NAMES:
        path = shutil.which(name)
        if not path:
            continue
        said = processes.run([path, "--version"]).said
        match = re.search(r"clang version (\d+)(\S*)", said)
        if match and int(match[1]) >= OLDEST:
            return path, match[1] + match[2]
        old.append(f"{path} ({match[1] + match[2] if match else said.splitlines()[0] if said else 'no version'})")
    found = ", ".join(old) or (f"{given}, which is not there" if given else "none")
    raise ToolError(f"expected clang++ from {OLDEST} on for the host side, found {found}; {RECIPE}")


def compile_plain(plan: Compilation, source: str, output: str, depends: str) -> str:
    """A source without a device side."""
    return _clang([*_words(plan), "-MD", "-MF", depends, "-c", "-x", "c++", source, "-o", output], source)


def compile_host(
    plan: Compilation,
    source: str,
    output: str,
    depends: str,
    runtime: Runtime,
    headers: tuple[str, str],
    payload: bytes,
) -> str:
    """The object of a source, its device side in it; returns what clang says. Raises ToolError where it refuses.

    The layouts of its records are left beside the dependencies, in the file LAYOUTS.
    """
    work = Path(depends).parent
    for name, text in zip(("header.h", "footer.h"), integration.host_headers(*headers), strict=True):
        (work / name).write_text(text, "utf-8", "surrogateescape")
    (work / "payload").write_bytes(payload)
    # One file, named like the source, as icpx hands it to a host compiler: source and footer.
    whole = work / f"{os.path.basename(source)}.cpp"
    includes = [os.path.abspath(source), work / "footer.h"]
    lines = [f'#include "{path}"\n' for path in includes]
    whole.write_text("".join(lines) + objects.assembly(str(work / "payload")), "utf-8", "surrogateescape")
    argv = [
        # Before what the command line includes: SYCL's own headers must not come first.
        "-include", str(work / "header.h"),
        *_words(plan), *sycl_words(plan, runtime), "-MD", "-MF", depends, f"-ffile-prefix-map={work}=.",
        # The front end has said what is to be warned of: both sides see the same source.
        "-w", *layouts.DUMP, "-c", "-x", "c++", str(whole), "-o", output,
    ]  # fmt: skip
    return _clang(argv, source, str(work / LAYOUTS))


def sycl_words(plan: Compilation, runtime: Runtime) -> list[str]:
    """What makes clang see what DPC++ sees when it compiles the host side."""
    words = ["-Xclang", "-fsycl-is-host", "-fclang-abi-compat=17", "-isystem", runtime.include]
    macros = {
        "SYCL_LANGUAGE_VERSION": "202012L",
        "__INTEL_SYCL_USE_INTEGRATION_HEADERS": "1",
        "__SYCL_ANY_DEVICE_HAS_ANY_ASPECT__": "1",
        "__SYCL_UNNAMED_LAMBDA__": "1",
    }
    if "-fno-sycl-unnamed-lambda" in plan.device:
        del macros["__SYCL_UNNAMED_LAMBDA__"]
    if "-fsycl-id-queries-fit-in-int" in plan.device:
        macros["__SYCL_ID_QUERIES_FIT_IN_INT__"] = "1"
    for way in ("disable", "force"):
        if f"-fsycl-range-rounding={way}" in plan.device:
            macros[f"__SYCL_{way.upper()}_PARALLEL_FOR_RANGE_ROUNDING__"] = "1"
    return [*words, "-USYCL_LANGUAGE_VERSION", *(f"-D{name}={value}" for name, value in macros.items())]


def assemble(text: str, functions: str, output: str, work: str) -> None:
    """An object from assembly text, and from C++ where there is any."""
    source, more = os.path.join(work, "images.s"), os.path.join(work, "functions.cpp")
    Path(source).write_text(text)
    if not functions:
        _clang(["-c", "-x", "assembler", source, "-o", output], output)
        return
    Path(more).write_text(functions)
    parts = [os.path.join(work, name) for name in ("images.o", "functions.o")]
    _clang(["-c", "-x", "assembler", source, "-o", parts[0]], output)
    _clang(["-c", "-fPIC", "-O1", f"-ffile-prefix-map={work}=.", "-x", "c++", more, "-o", parts[1]], output)
    _clang(["-r", "-nostdlib", *parts, "-o", output], output)


def link(argv: Sequence[str]) -> str:
    return _clang(list(argv), "linking")


def _words(plan: Compilation) -> list[str]:
    words = [*plan.both, *plan.host] if plan.host_only is None else [*plan.host_only]
    # One option that only g++ has is no reason to stop, and clang says so of each.
    words = [DECLSPEC, *words, "-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument"]
    return words if any(word.startswith("-std=") for word in words) else [STANDARD, *words]


def _clang(argv: list[str], source: str, printed: str | None = None) -> str:
    program, _ = find()
    done = processes.run([program, *argv], output=printed)
    if done.code:
        if done.code < 0 or done.code > 128:
            raise ToolError(f"{program} {processes.ending(done.code)}\n{done.said}", source)
        raise ToolError(done.said.strip("\n"))
    return done.said
