"""Builds a torch extension with ESIMD kernels for the CPU, from its sources as they stand.

Knows a compiler's flags and ninja. Which sources there are is for `sources`, which belong together for `libraries`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from schema_patch.build.driver.absent import throwing
from schema_patch.model import ToolError

from . import absent, lacks, libraries
from .sources import HostSource, include_folders, read_with_headers, sources, sub_groups, uses_torch

HERE = Path(__file__).resolve().parent
RUNTIME = "libesimd_host.so"
SAID = "failed.txt"  # all that compilers said of what failed
SUB_GROUPS = (8, 16, 32)
MANY = 4  # sources with torch's headers from which on these are compiled once, for all

# What each sanitizer's build is called with; the runtime of the address and thread ones must be loaded before Python.
SANITIZERS = {
    "address": ("-fsanitize=address", "-fno-omit-frame-pointer"),
    "undefined": ("-fsanitize=undefined", "-fno-sanitize=vptr"),
    # Block accesses are copies, which an inlined memcpy would hide.
    "thread": ("-fsanitize=thread", "-DESIMD_HOST_TSAN", "-fno-builtin-memcpy"),
    "memory": ("-fsanitize=memory", "-fno-omit-frame-pointer"),  # clang's alone
}


@dataclass(frozen=True, kw_only=True)
class HostBuild:
    """What to build: `tree` into `out`.

    checks    kernels tell the runtime of every access
    sanitize  names of SANITIZERS; not together with checks
    only      patterns of paths within the tree; empty for all
    define    macros that the tree's own build gives its sources, NAME or NAME=VALUE
    """

    tree: Path
    out: Path
    compiler: str = "g++"
    checks: bool = False
    sanitize: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    define: tuple[str, ...] = ()
    jobs: int = 2


@dataclass(frozen=True)
class Built:
    """What came of it: libraries, namespaces and modules that load; what failed and why; what was left out; clashes.

    lost    by library, its functions that throw: no source that compiled defines them
    """

    libraries: tuple[Path, ...]
    namespaces: tuple[str, ...]
    modules: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)  # what each lacks, in a line
    lost: dict[str, tuple[str, ...]] = field(default_factory=dict)
    compiled: int = 0
    of: int = 0
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def build(plan: HostBuild) -> Built:
    """Compile, link, and load once. Raises ToolError where nothing can be built; what fails is in the result."""
    plan = replace(
        plan, tree=plan.tree.resolve(), out=plan.out.resolve(), include=tuple(p.resolve() for p in plan.include)
    )
    files = sources(plan.tree, plan.only)
    for tool in (plan.compiler, "ninja", "nm"):
        if not _tool(tool):
            raise ToolError(f"{tool} is needed and not on the path")
    folders = (*plan.include, *include_folders(plan.tree, [source.path for source in files]))
    texts = {source: read_with_headers(source.path, folders) for source in files}
    failed = {source.name: words for source, text in texts.items() if (words := _not_for_the_host(text))}
    (plan.out / libraries.FOLDER).mkdir(parents=True, exist_ok=True)
    fit = {source: text for source, text in texts.items() if source.name not in failed}
    script, objects = _script(plan, fit, folders)
    uncompiled = _ninja(plan, script, [f"{libraries.FOLDER}/{RUNTIME}", *objects.values()])
    if any(name not in objects.values() for name in uncompiled):
        raise ToolError("the runtime of the host build did not compile:\n" + "\n".join(uncompiled.values()))
    made = {source: plan.out / name for source, name in objects.items() if name not in uncompiled}
    named = libraries.names(libraries.groups(made))
    targets = {f"{libraries.FOLDER}/{library}": group for library, group in named.items()}
    linked = _linked(plan, script, objects, targets)
    lacking = bool(linked.refused or linked.lost)
    missed = {s.name: uncompiled[n] for s, n in objects.items() if n in uncompiled and (lacking or not s.helper)}
    missed |= {Path(target).name: words for target, words in linked.failed.items()}
    (plan.out / SAID).write_text("".join(f"{name}\n{words}\n\n" for name, words in missed.items()))
    failed |= {name: lacks.line(words, plan.tree) for name, words in missed.items()}
    failed |= {path.name: words for path, words in linked.refused.items()}
    good = {path.name: group for path, group in linked.loaded.items()}
    spaces, modules, notes = libraries.write_loaders(plan.out, good)
    used = {source for group in named.values() for source in group}
    return Built(
        tuple(linked.loaded),
        spaces,
        modules,
        failed,
        linked.lost,
        len(made),
        len(files),
        tuple(source.name for source in made if source not in used),
        notes,
    )


@dataclass(frozen=True)
class _Linked:
    """Libraries that load, those that do not and why, what the linker said of others, and what is stood in for."""

    loaded: dict[Path, list[HostSource]]
    refused: dict[Path, str]
    failed: dict[str, str]
    lost: dict[str, tuple[str, ...]]


def _linked(
    plan: HostBuild, script: Sequence[str], objects: Mapping[HostSource, str], targets: Mapping[str, list[HostSource]]
) -> _Linked:
    """Links and loads each library; one that lacks functions once more, with functions that throw."""
    links = {target: _link(target, [objects[source] for source in group], group) for target, group in targets.items()}
    failed = _ninja(plan, [*script, *links.values()], targets)
    made = {plan.out / target: group for target, group in targets.items() if target not in failed}
    # A sanitizer's runtime has to be loaded before Python's.
    refused = {} if plan.sanitize else libraries.what_does_not_load(made)
    lost = {path: names for path in refused if (names := absent.functions(path))}
    if lost:
        again = {f"{libraries.FOLDER}/{path.name}": _stand_in(plan, path, names) for path, names in lost.items()}
        for target, (stand_in, compiled) in again.items():
            parts = [*(objects[source] for source in targets[target]), stand_in]
            links[target] = f"{compiled}\n{_link(target, parts, targets[target])}"
        failed |= _ninja(plan, [*script, *links.values()], again)
        made = {plan.out / target: group for target, group in targets.items() if target not in failed}
        kept = {path: words for path, words in refused.items() if path not in lost}
        refused = kept | libraries.what_does_not_load({path: made[path] for path in lost if path in made})
    loaded = {path: group for path, group in made.items() if path not in refused}
    return _Linked(loaded, refused, failed, {p.name: tuple(lost[p].values()) for p in loaded if p in lost})


def _stand_in(plan: HostBuild, library: Path, names: dict[str, str]) -> tuple[str, str]:
    """An object with functions that throw, and the lines of the build file that make it."""
    text = plan.out / "absent" / f"{library.stem}.cpp"
    text.parent.mkdir(exist_ok=True)
    text.write_text(throwing(names, absent.WHY))
    made = f"absent/{library.stem}.o"
    return made, f"build {_escaped(made)}: runtime {_escaped(text)}"


def _not_for_the_host(text: str) -> str:
    widths, unknown = sub_groups(text)
    if unknown:
        return f"asks for sub-groups of {unknown[0]}: how many work-items that are stands in no header of the tree"
    if len(widths) > 1:
        return f"asks for sub-groups of {' and '.join(map(str, widths))}: on the host a source has one width"
    if widths and widths[0] not in SUB_GROUPS:
        return f"asks for sub-groups of {widths[0]}: on the host they have {', '.join(map(str, SUB_GROUPS))}"
    return ""


def _script(
    plan: HostBuild, files: Mapping[HostSource, str], folders: Sequence[Path]
) -> tuple[list[str], dict[HostSource, str]]:
    """The build file up to the objects, and these by source. `files`: each source's text with that of its headers."""
    prelude = plan.out / "prelude.hpp"
    if not prelude.exists():
        prelude.write_text("#include <esimd_host/prelude.hpp>\n")
    once = sum(map(uses_torch, files.values())) >= MANY
    if not once:  # one of an earlier build would be used, however old
        (plan.out / "prelude.hpp.gch").unlink(missing_ok=True)
    objects = {source: f"{source.name}.o" for source in files}
    script = [*_rules(plan, folders), *(["build prelude.hpp.gch: prelude prelude.hpp"] if once else [])]
    script += [_compile(source, objects[source], text, once) for source, text in files.items()]
    return script, objects


def _tool(name: str) -> str | None:
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def _variables(plan: HostBuild, folders: Sequence[Path]) -> dict[str, list[str]]:
    """What the rules are made of: the compiler, and what it is called with."""
    from torch import compiled_with_cxx11_abi
    from torch.utils import cpp_extension

    torch_includes = cpp_extension.include_paths()
    torch_lib = Path(torch_includes[0]).parent / "lib"
    sanitize = [flag for name in plan.sanitize for flag in SANITIZERS[name]]
    watch = []
    if plan.checks:
        quiet = "tsan-instrument-func-entry-exit=0"
        gnu = "clang" not in Path(plan.compiler).name
        watch = ["-DESIMD_HOST_CHECKS", "-fsanitize=thread", "-g1"]
        watch += ["--param", quiet] if gnu else ["-mllvm", f"-{quiet}"]
    common = ["-std=c++20", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-w"]
    common += ["-g1"] if plan.sanitize else []
    common += [f"-D_GLIBCXX_USE_CXX11_ABI={int(compiled_with_cxx11_abi())}"]
    includes = [f"-I{folder}" for folder in folders]
    includes += [
        f"-isystem{folder}" for folder in (HERE / "include", *torch_includes, sysconfig.get_paths()["include"])
    ]
    link = ["-shared", *(flag for flag in sanitize if flag.startswith("-fsanitize"))]
    link += [f"-L{torch_lib}", f"-Wl,-rpath,{torch_lib}", "-Wl,-rpath,$ORIGIN", "-ltorch", "-ltorch_cpu", "-lc10"]
    checks = ["-DESIMD_HOST_CHECKS"] if plan.checks else []
    return {
        "cxx": [_tool(plan.compiler) or plan.compiler],
        "flags": [*common, *sanitize, *watch, *(f"-D{macro}" for macro in plan.define), *includes],
        "runtime_flags": [*common, *sanitize, *checks, *includes],
        "link": link,
    }


def _rules(plan: HostBuild, folders: Sequence[Path]) -> list[str]:
    runtime = [
        str(path) for path in sorted((HERE / "runtime").glob("*.cpp")) if plan.checks or path.stem != "instrumented"
    ]
    runtime_objects = [f"runtime/{Path(path).stem}.o" for path in runtime]
    return [
        f"builddir = {_escaped(plan.out)}",
        *(f"{name} = {' '.join(_quoted(word) for word in words)}" for name, words in _variables(plan, folders).items()),
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
        f"  command = $cxx $in -o $out -L{libraries.FOLDER} -lesimd_host $link $extra",
        "rule link_runtime",
        # Its own templates, not the instrumented ones of the libraries that load it.
        "  command = $cxx $in -o $out $link -Wl,-Bsymbolic -ldl -lpthread",
        *(f"build {name}: runtime {_escaped(path)}" for name, path in zip(runtime_objects, runtime, strict=True)),
        f"build {libraries.FOLDER}/{RUNTIME}: link_runtime {' '.join(runtime_objects)}",
    ]


def _quoted(word: str) -> str:
    return shlex.quote(word).replace("$", "$$")


def _escaped(path: str | Path) -> str:
    return re.sub(r"([$ :])", r"$\1", str(path))


def _compile(source: HostSource, name: str, text: str, once: bool) -> str:
    extra = f"-DTORCH_EXTENSION_NAME={source.extension}"
    if source.pybind:
        extra += " -DESIMD_HOST_PYBIND"
    for width in sub_groups(text)[0]:
        extra += f" -DESIMD_HOST_SUB_GROUP={width}"
    with_torch = uses_torch(text)
    if with_torch:
        extra += " -include prelude.hpp"
    after = " | prelude.hpp.gch" if with_torch and once else ""
    return f"build {_escaped(name)}: compile {_escaped(source.path)}{after}\n  extra = {extra}"


def _link(target: str, parts: Iterable[str], group: Iterable[HostSource]) -> str:
    extra = "-ltorch_python" if any(source.pybind for source in group) else ""
    inputs = " ".join(map(_escaped, parts))
    return f"build {_escaped(target)}: link {inputs} | {libraries.FOLDER}/{RUNTIME}\n  extra = {extra}"


def _ninja(plan: HostBuild, script: Iterable[str], targets: Iterable[str]) -> dict[str, str]:
    """Builds the targets as far as that goes; what failed, with the compiler's words. Without targets, nothing."""
    if not (targets := list(targets)):
        return {}
    (plan.out / "build.ninja").write_text("\n".join(script) + "\n")
    command = [str(_tool("ninja")), "-C", str(plan.out), "-k", "0", "-j", str(plan.jobs), *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return {}
    failed: dict[str, str] = {}
    for part in re.split(r"^FAILED: (?:\[code=\d+\] )?", done.stdout, flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        lines = [line for line in rest.splitlines()[1:] if not line.startswith("[")]
        failed[head.strip()] = "\n".join(lines)
    if not failed:
        raise ToolError(f"ninja failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed
