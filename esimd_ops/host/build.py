"""Builds a torch extension with ESIMD kernels for the CPU, from its sources as they stand.

Knows a compiler's flags, ninja, and which sources of a tree belong together: those that need each other's symbols are
one library, as in the tree's own build. Knows no operator; parses no C++ beyond the names that a line announces.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schema_patch.model import ToolError
from schema_patch.text.files import walk

HERE = Path(__file__).resolve().parent
RUNTIME = "libesimd_host.so"
HOST_SUFFIXES = (".cc", ".cpp", ".cxx")
NO_KERNELS = {"build", "dist", "tests", "test"}  # what earlier builds left, and what registers for itself
SUB_GROUP = 16  # kSubGroupSize of the headers
MANY = 4  # sources with torch's headers from which on these are compiled once, for all

_REGISTRATION = re.compile(rb"^\s*(?:TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?\s*\(|PYBIND11_MODULE\s*\()", re.MULTILINE)
_NAMESPACE = re.compile(rb"^\s*TORCH_LIBRARY(?:_FRAGMENT)?\s*\(\s*(\w+)\s*,", re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_TORCH = re.compile(r"^\s*#\s*include\s*[<\"](?:ATen|c10|torch)/", re.MULTILINE)
_SUB_GROUP = re.compile(rb"(?:reqd_)?sub_group_size\s*(?:\(|<)\s*(\d+)")

# What each sanitizer's build is called with; the runtime of the address and thread ones must be loaded before Python.
SANITIZERS = {
    "address": ("-fsanitize=address", "-fno-omit-frame-pointer"),
    "undefined": ("-fsanitize=undefined", "-fno-sanitize=vptr"),
    # Block accesses are copies, which an inlined memcpy would hide.
    "thread": ("-fsanitize=thread", "-DESIMD_HOST_TSAN", "-fno-builtin-memcpy"),
    "memory": ("-fsanitize=memory", "-fno-omit-frame-pointer"),  # clang's alone
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to build: `tree` into `out`.

    checks    kernels tell the runtime of every access
    sanitize  names of SANITIZERS; not together with checks
    only      patterns of paths within the tree; empty for all
    """

    tree: Path
    out: Path
    compiler: str = "g++"
    checks: bool = False
    sanitize: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    jobs: int = 2


@dataclass(frozen=True)
class Built:
    """What came of it: libraries by the namespaces they register, and sources that did not compile, with the errors."""

    libraries: tuple[Path, ...]
    namespaces: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)


def sources(tree: Path, only: Sequence[str] = ()) -> tuple[Path, ...]:
    """The kernel sources (.sycl) and registration files of a tree. Raises ToolError where there are none."""
    if not tree.is_dir():
        raise ToolError("no such directory", str(tree))
    found = []
    for folder, folders, names in walk(str(tree)):
        folders[:] = [name for name in folders if name not in NO_KERNELS]
        for name in names:
            path = Path(folder, name)
            if path.suffix == ".sycl" or (path.suffix in HOST_SUFFIXES and _REGISTRATION.search(path.read_bytes())):
                found.append(path)
    if not found:
        raise ToolError("expected .sycl sources or C++ files with TORCH_LIBRARY, found neither", str(tree))
    chosen = [p for p in found if not only or any(fnmatch.fnmatch(str(p.relative_to(tree)), o) for o in only)]
    if not chosen:
        raise ToolError(f"none of {len(found)} sources matches {', '.join(only)}", str(tree))
    for path in chosen:
        for width in _SUB_GROUP.findall(path.read_bytes()):
            if int(width) != SUB_GROUP:
                raise ToolError(f"asks for sub-groups of {int(width)}; on the host they have {SUB_GROUP}", str(path))
    return tuple(chosen)


def include_folders(tree: Path, files: Iterable[Path]) -> tuple[Path, ...]:
    """Where the headers lie that the sources include by a name that is not relative to themselves."""
    headers = [p for suffix in ("*.h", "*.hpp", "*.hh") for p in sorted(tree.rglob(suffix))]
    folders: dict[Path, None] = {}
    for path in [*files, *headers]:
        for name in _INCLUDE.findall(path.read_text("utf-8", "replace")):
            if (path.parent / name).exists():
                continue
            for header in headers:
                if header.as_posix().endswith("/" + name):
                    folders[Path(header.as_posix()[: -len(name) - 1])] = None
                    break
    return tuple(folders)


def build(plan: Plan) -> Built:
    """Compile and link. Raises ToolError where nothing can be built; sources that do not compile are in the result."""
    files = sources(plan.tree, plan.only)
    for tool in (plan.compiler, "ninja", "nm"):
        if not _tool(tool):
            raise ToolError(f"{tool} is needed and not on the path")
    plan.out.mkdir(parents=True, exist_ok=True)
    prelude = plan.out / "prelude.hpp"
    if not prelude.exists():
        prelude.write_text("#include <esimd_host/prelude.hpp>\n")
    objects = {path: f"{path.relative_to(plan.tree).as_posix()}.o" for path in files}
    folders = include_folders(plan.tree, files)
    with_torch = {path for path in files if _uses_torch(path, folders)}
    once = len(with_torch) >= MANY
    if not once:  # one of an earlier build would be used, however old
        (plan.out / "prelude.hpp.gch").unlink(missing_ok=True)
    script = [*_rules(plan, folders), *(["build prelude.hpp.gch: prelude prelude.hpp"] if once else [])]
    script += [_compile(path, name, path in with_torch, once) for path, name in objects.items()]
    (plan.out / "build.ninja").write_text("\n".join(script) + "\n")
    failed = _ninja(plan, [RUNTIME, *objects.values()])
    if any(name not in objects.values() for name in failed):
        raise ToolError("the runtime of the host build did not compile:\n" + "\n".join(failed.values()))
    made = {path: name for path, name in objects.items() if name not in failed}
    libraries = {}
    for group in _groups(plan, made):
        named = next((path for path in group if _REGISTRATION.search(path.read_bytes())), group[0])
        name = f"{named.stem}.so"
        if name in libraries:
            name = f"{'_'.join(named.relative_to(plan.tree).with_suffix('').parts)}.so"
        libraries[name] = [made[path] for path in group]
    script += [f"build {library}: link {' '.join(parts)} | {RUNTIME}" for library, parts in libraries.items()]
    (plan.out / "build.ninja").write_text("\n".join(script) + "\n")
    unlinked = _ninja(plan, libraries)
    errors = {str(p.relative_to(plan.tree)): failed[n] for p, n in objects.items() if n in failed}
    errors |= {name: unlinked[name] for name in libraries if name in unlinked}
    done = tuple(plan.out / name for name in libraries if name not in unlinked)
    spaces = sorted({name.decode() for path in made for name in _NAMESPACE.findall(path.read_bytes())})
    for space in spaces:
        (plan.out / f"{space}.py").write_text(_LOADER.format(space=space, names=[p.name for p in done]))
    return Built(done, tuple(spaces), errors)


_LOADER = '''"""Loads the libraries of a host build, which register torch.ops.{space}."""

from pathlib import Path

import torch

for name in {names!r}:
    torch.ops.load_library(Path(__file__).resolve().with_name(name))
'''


def _tool(name: str) -> str | None:
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def _uses_torch(path: Path, folders: Sequence[Path]) -> bool:
    """The source or a header of the tree that it includes asks for torch's headers."""
    pending, known = [path], {path}
    while pending:
        one = pending.pop()
        text = one.read_text("utf-8", "replace")
        if _TORCH.search(text):
            return True
        for name in _INCLUDE.findall(text):
            found = next((f / name for f in (one.parent, *folders) if (f / name).is_file()), None)
            if found and found not in known:
                known.add(found)
                pending.append(found)
    return False


def _rules(plan: Plan, folders: Sequence[Path]) -> list[str]:
    from torch.utils import cpp_extension

    torch_includes = cpp_extension.include_paths()
    torch_lib = Path(torch_includes[0]).parent / "lib"
    sanitize = [flag for name in plan.sanitize for flag in SANITIZERS[name]]
    watch = []
    if plan.checks:
        watch = ["-DESIMD_HOST_CHECKS", "-fsanitize=thread", "-g1"]
        gnu = "clang" not in Path(plan.compiler).name
        watch += (
            ["--param", "tsan-instrument-func-entry-exit=0"]
            if gnu
            else ["-mllvm", "-tsan-instrument-func-entry-exit=0"]
        )
    common = ["-std=c++20", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-w"]
    common += ["-g1"] if plan.sanitize else []
    includes = [f"-I{folder}" for folder in (*plan.include, *folders)]
    includes += [
        f"-isystem{folder}" for folder in (HERE / "include", *torch_includes, sysconfig.get_paths()["include"])
    ]
    from torch import compiled_with_cxx11_abi

    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(compiled_with_cxx11_abi())}"
    runtime = [
        str(path) for path in sorted((HERE / "runtime").glob("*.cpp")) if plan.checks or path.stem != "instrumented"
    ]
    link = ["-shared", *(flag for flag in sanitize if flag.startswith("-fsanitize"))]
    link += [f"-L{torch_lib}", f"-Wl,-rpath,{torch_lib}", "-Wl,-rpath,'$$ORIGIN'", "-ltorch", "-ltorch_cpu", "-lc10"]
    checks = ["-DESIMD_HOST_CHECKS"] if plan.checks else []
    variables = {
        "cxx": [_tool(plan.compiler) or plan.compiler],
        "flags": [*common, abi, *sanitize, *watch, *includes],
        "runtime_flags": [*common, abi, *sanitize, *checks, *includes],
        "link": link,
    }
    return [
        f"builddir = {plan.out}",
        *(f"{name} = {' '.join(words)}" for name, words in variables.items()),
        "rule prelude",
        "  command = $cxx $flags -x c++-header $in -o $out -MD -MF $out.d",
        "  depfile = $out.d",
        "rule compile",
        "  command = $cxx $flags $extra -x c++ -c $in -o $out -MD -MF $out.d",
        "  depfile = $out.d",
        "rule runtime",
        "  command = $cxx $runtime_flags -c $in -o $out -MD -MF $out.d",
        "  depfile = $out.d",
        "rule link",
        "  command = $cxx $in -o $out -L. -lesimd_host $link",
        "rule link_runtime",
        # Its own templates, not the instrumented ones of the libraries that load it.
        "  command = $cxx $in -o $out $link -Wl,-Bsymbolic -ldl -lpthread",
        *(f"build runtime/{Path(path).stem}.o: runtime {path}" for path in runtime),
        f"build {RUNTIME}: link_runtime {' '.join(f'runtime/{Path(path).stem}.o' for path in runtime)}",
    ]


def _compile(path: Path, name: str, with_torch: bool, once: bool) -> str:
    extra = f"-DTORCH_EXTENSION_NAME={path.stem}"
    if b"PYBIND11_MODULE" in path.read_bytes():
        extra += " -DESIMD_HOST_PYBIND"
    if with_torch:
        extra += " -include prelude.hpp"
    after = " | prelude.hpp.gch" if with_torch and once else ""
    return f"build {name}: compile {path.resolve()}{after}\n  extra = {extra}"


def _ninja(plan: Plan, targets: Iterable[str]) -> dict[str, str]:
    """Builds the targets as far as that goes; what failed, with the compiler's words."""
    command = [str(_tool("ninja")), "-C", str(plan.out), "-k", "0", "-j", str(plan.jobs), *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return {}
    failed: dict[str, str] = {}
    for part in re.split(r"^FAILED: (?:\[code=\d+\] )?", done.stdout, flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        lines = [line for line in rest.splitlines()[1:] if not line.startswith("[")]
        failed[head.split()[0]] = "\n".join(lines[:40])
    if not failed:
        raise ToolError(f"ninja failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed


def _groups(plan: Plan, objects: dict[Path, str]) -> list[list[Path]]:
    """Sources whose objects need each other's symbols, in the order of the tree."""
    defined: dict[str, list[Path]] = {}
    needed: dict[Path, list[str]] = {}
    for path, name in objects.items():
        listing = subprocess.run(
            ["nm", "--format=posix", str(plan.out / name)], capture_output=True, text=True, check=True
        ).stdout
        needed[path] = []
        for line in listing.splitlines():
            symbol, kind, *_ = line.split(" ")
            if kind in "TDB":
                defined.setdefault(symbol, []).append(path)
            elif kind == "U":
                needed[path].append(symbol)
    group = {path: {path} for path in objects}
    for path, symbols in needed.items():
        for symbol in symbols:
            if owners := defined.get(symbol):
                owner = max(owners, key=lambda other: len(os.path.commonpath([other, path])))
                joined = group[path] | group[owner]
                for member in joined:
                    group[member] = joined
    unique: list[list[Path]] = []
    for path in objects:
        members = [other for other in objects if other in group[path]]
        if members not in unique:
            unique.append(members)
    return unique
