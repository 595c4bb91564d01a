"""What a build will meet on this machine: facts, gathered by running the programs themselves. Judges nothing.

What torch says is asked of the interpreter that will build, in a process of its own (interpreter.py). A program that is
missing is a fact; one that cannot be run is told with what it said. doctor.py judges.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec

from schema_patch.model import ToolError

from .driver import hostside, offline, runtime
from .driver.runtime import major, path_runtimes

Answer = TypeVar("Answer")

VARIABLES = (
    "TORCH_XPU_ARCH_LIST", "MAX_JOBS", "CXX", "LD_LIBRARY_PATH", "SETVARS_COMPLETED", "OCL_ICD_FILENAMES",
    "ONEAPI_DEVICE_SELECTOR",
)  # fmt: skip
PATIENCE = 120  # seconds that one program may take to tell its version, or torch to be imported from a cold disk


class Executable(msgspec.Struct, frozen=True):
    """A program on the path; `version` is empty where it would not tell."""

    path: str
    version: str
    said: str = ""


class Torch(msgspec.Struct, frozen=True):
    """`sycl`: the files named libsycl.so.N that importing it loads. `arch_list`: what it would compile for."""

    version: str
    xpu: bool = False
    arch_list: tuple[str, ...] = ()
    sycl: tuple[str, ...] = ()


class Devices(msgspec.Struct, frozen=True):
    """What the pip-installed SYCL runtime finds with the environment as it is, and when shown its CPU device."""

    shown: Mapping[str, int]
    as_it_is: Mapping[str, int]
    error: str = ""


class Interpreter(msgspec.Struct, frozen=True):
    """The Python that will build."""

    executable: str
    version: str
    prefix: str
    scripts: str
    packages: Mapping[str, str]
    libraries: tuple[str, ...]


class FoundCache(msgspec.Struct, frozen=True):
    """A compile cache that names known operators."""

    kind: str
    path: str
    operators: int


class Driver(msgspec.Struct, frozen=True):
    """The parts of the kit's own SYCL compiler, each as it tells itself; of a missing one, why in `missing`."""

    root: str  # the folder whose lib/ has the front end
    front_end: str
    runtime: str
    clang: str
    offline: str
    missing: Mapping[str, str]


class Facts(msgspec.Struct, frozen=True):
    """All that doctor.py judges. Memory in bytes; cards are PCI device numbers of Intel display controllers."""

    interpreter: Interpreter
    torch: Torch | None
    torch_error: str
    programs: Mapping[str, Executable]
    environment: Mapping[str, str]
    path_runtimes: tuple[str, ...]  # files libsycl.so.N in the directories of LD_LIBRARY_PATH, in its order
    devices: Devices | None
    ocloc_ids: Mapping[str, tuple[str, ...]]  # device word -> versions such as 20.2.0; empty: unknown to this ocloc
    cards: tuple[str, ...]
    cpus: int
    memory: int
    caches: tuple[FoundCache, ...]
    driver: Driver | None = None


def gather(python: str, environment: Mapping[str, str], namespaces: Sequence[str] = ()) -> Facts:
    """Looks at everything. Raises ToolError where the interpreter cannot be asked at all."""
    interpreter = _ask(python, environment, ["packages"], Interpreter)
    # torch looks for ninja on the path only; pip is started with the scripts of its interpreter first.
    env = {**environment, "PATH": os.pathsep.join((interpreter.scripts, environment.get("PATH", os.defpath)))}
    torch, torch_error = None, ""
    if "torch" in interpreter.packages:
        try:
            torch = _ask(python, env, ["torch"], Torch)
        except ToolError as error:
            torch_error = error.message
    programs = find_programs(env)
    words = arch_words(environment.get("TORCH_XPU_ARCH_LIST", ""))
    ocloc = programs.get("ocloc")
    return Facts(
        interpreter=interpreter,
        torch=torch,
        torch_error=torch_error,
        programs=programs,
        environment={name: environment[name] for name in VARIABLES if name in environment},
        path_runtimes=path_runtimes(environment.get("LD_LIBRARY_PATH", "")),
        devices=_devices(python, env, interpreter.libraries),
        ocloc_ids={word: _ocloc_ids(ocloc.path, word, env) for word in words} if ocloc else {},
        cards=cards(),
        cpus=len(os.sched_getaffinity(0)),
        memory=available_memory(),
        caches=_caches(namespaces, environment),
        driver=_driver(interpreter.libraries, words),
    )


def asks_for_sycl(tree: Path) -> bool:
    """Its setup.py has torch's extension for SYCL, or calls SYCL's compiler by itself."""
    return any(re.search(rb"\b(?:SyclExtension|icpx)\b", path.read_bytes()) for path in tree.glob("setup*.py"))


def arch_words(given: str) -> list[str]:
    """The devices of a TORCH_XPU_ARCH_LIST."""
    return [word for word in re.split(r"[,;\s]+", given) if word]


def find_programs(environment: Mapping[str, str]) -> dict[str, Executable]:
    """The programs of a build that are on the path, each asked for its version."""
    compiler = (environment.get("CXX") or "c++").split()[0]
    found = {}
    for name, command in {"icpx": "icpx", "ocloc": "ocloc", "ninja": "ninja", "c++": compiler}.items():
        path = shutil.which(command, path=environment.get("PATH"))
        if path:
            found[name] = _version(path, environment)
    return found


def compiler_libraries(facts: Facts) -> str:
    """The folder of icpx's own libraries, which no search path names where setvars.sh was not sourced."""
    icpx = facts.programs.get("icpx")
    return str(Path(icpx.path).resolve().parents[1] / "lib") if icpx else ""


def cards(root: Path = Path("/sys/bus/pci/devices")) -> tuple[str, ...]:
    """Device numbers of the Intel display controllers in the machine, as the kernel lists them."""
    found = []
    for entry in sorted(root.glob("*")):
        try:
            vendor, kind, device = ((entry / name).read_text().strip() for name in ("vendor", "class", "device"))
        except OSError:  # a device without these files is no card
            continue
        if vendor == "0x8086" and kind.startswith("0x03"):
            found.append(device.removeprefix("0x"))
    return tuple(found)


def available_memory(meminfo: Path = Path("/proc/meminfo"), control_group: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can still be had: the kernel's estimate, or what the container's own limit leaves of it."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    free = int(match[1]) * 1024 if match else 0
    try:
        limit, used = ((control_group / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:  # not in a control group of the second kind
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - int(used)))


def _version(path: str, environment: Mapping[str, str]) -> Executable:
    # `ocloc --version` is an error to older ones; what else they know, only a device can be asked.
    done = _run([path, "--version"], environment)
    said = (done.stdout + done.stderr).strip()
    found = re.search(r"\d+\.\d+(?:\.\d+)*", said)
    return Executable(path, found[0] if found and not done.returncode else "", said.splitlines()[0] if said else "")


def _ocloc_ids(ocloc: str, word: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    done = _run([ocloc, "ids", word], environment)
    return tuple(re.findall(r"^\s*(\d+\.\d+\.\d+)\s*$", done.stdout, re.MULTILINE)) if not done.returncode else ()


def _devices(python: str, environment: Mapping[str, str], libraries: Sequence[str]) -> Devices | None:
    """Asks the runtime twice where intel-opencl-rt is installed: as things are, and with its device named."""
    runtime = next(filter(major, libraries), None)
    device = next((path for path in libraries if path.endswith("libintelocl.so")), None)
    if not runtime:
        return None
    try:
        as_it_is = _ask(python, environment, ["devices", runtime], dict[str, int])
        shown = as_it_is
        if device and "OCL_ICD_FILENAMES" not in environment:
            shown = _ask(python, {**environment, "OCL_ICD_FILENAMES": device}, ["devices", runtime], dict[str, int])
    except ToolError as error:
        return Devices({}, {}, error.message)
    return Devices(shown, as_it_is)


def _driver(libraries: Sequence[str], devices: Sequence[str]) -> Driver:
    """The kit's own compiler, for the SYCL runtime of the interpreter that will build, and for these devices."""
    root = next((str(Path(path).parents[1]) for path in filter(major, libraries)), "")
    parts: dict[str, Callable[[], str]] = {
        "clang": lambda: " ".join(hostside.find()), "offline": lambda: offline.check_devices(devices).told
    }  # fmt: skip
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    front_end = runtime.at(Path(root)) if root and (Path(root) / "lib" / runtime.FRONT_END).is_file() else None
    if front_end is None:
        missing["front end"] = runtime.MISSING
    for part, answer in parts.items():
        try:
            found[part] = answer()
        except ToolError as error:
            missing[part] = error.message
    return Driver(
        root=root,
        front_end=front_end.version if front_end else "",
        runtime=front_end.name if front_end else "",
        clang=found.get("clang", ""),
        offline=found.get("offline", ""),
        missing=missing,
    )


def _caches(namespaces: Sequence[str], environment: Mapping[str, str]) -> tuple[FoundCache, ...]:
    from schema_patch.installed import caches

    found = caches.find((), namespaces, environment) if namespaces else []
    return tuple(FoundCache(cache.kind, str(cache.path), len(cache.operators)) for cache in found if cache.operators)


def _ask(python: str, environment: Mapping[str, str], words: Sequence[str], kind: type[Answer]) -> Answer:
    """One answer of interpreter.py, run as text: from its file, its folder would hide modules of the same names."""
    program = (resources.files(__package__) / "interpreter.py").read_text("utf-8")
    done = _run([python, "-c", program, *words], environment)
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    if done.returncode:
        raise ToolError(lines[-1].strip() if lines else f"ended with exit code {done.returncode}", python)
    try:
        return msgspec.json.decode(done.stdout.splitlines()[-1] if done.stdout.strip() else "", type=kind)
    except msgspec.MsgspecError as error:
        raise ToolError(f"expected an answer in JSON, found {done.stdout[:80]!r}: {error}", python) from error


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a program to hear what it says. One that cannot be started, or does not end, has failed, and says so."""
    try:
        return subprocess.run(
            argv, env=dict(environment), cwd="/", capture_output=True, text=True, errors="replace", check=False,
            timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        return subprocess.CompletedProcess(argv, 127, "", f"cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"did not end within {PATIENCE} seconds")
