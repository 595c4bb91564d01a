"""SPIR-V -> machine code of a device, by ocloc and its graphics compiler (IGC).

Found on the path, under the name that a distribution gives it too, or where `make ocloc` has put it. Modules are
compiled side by side; one that was compiled before by the same compiler for the same device is not compiled again.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

import msgspec

from schema_patch.model import ToolError

from . import cache, notes, objects, processes
from .frontend import DeviceImage
from .processes import Voice, scratch

VARIABLE = "SCHEMA_PATCH_OCLOC"
FETCHED = "ocloc"  # the folder of `make ocloc`, in the cache
RECIPE = "`make ocloc` fetches it, or install intel-ocloc of a distribution that knows the device"
# What the libraries of IGC are called, the number behind which is its version.
LIBRARY = "libigc.so.*"
COMPILER = re.compile(r"libigc\.so\.(\d+\.\d+\.\d+)")
# What ocloc says, of its release of 2026 with less and less memory, where an allocation fails.
NO_MEMORY = re.compile(r"bad_alloc|error code: -6$|internal compiler error", re.IGNORECASE | re.MULTILINE)
DOUBLE = {True: "-doubleGRF", False: "-ze-opt-large-register-file"}  # by whether the vector compiler is meant


MACHINE = "machine code"


class Machine(msgspec.Struct, frozen=True):
    """Machine code of one image: an ELF file, or an archive of one for each device."""

    code: bytes

    @property
    def spills(self) -> dict[str, int]:
        """Bytes that a thread of each kernel keeps in memory for want of registers, of those that do."""
        spills: dict[str, int] = {}
        for part in objects.elf_files(self.code, MACHINE):
            for name, content in objects.sections(part, MACHINE):
                if name == notes.SECTION:
                    found = notes.read(content.decode("utf-8", "replace"), MACHINE)
                    spills.update({kernel: facts.spill_size for kernel, facts in found.items() if facts.spill_size})
        return spills


@dataclass(frozen=True, slots=True)
class Compiler:
    path: str
    version: str
    igc: str

    @property
    def told(self) -> str:
        return f"{self.path} (ocloc {self.version}, IGC {self.igc or 'of unknown version'})"


@once
def find() -> Compiler:
    """Raises ToolError where there is none."""
    given = os.environ.get(VARIABLE)
    path = shutil.which(given) if given else _on_path() or _fetched()
    if not path:
        where = f"{VARIABLE}={given} is not there" if given else "there is none on the path"
        raise ToolError(f"expected ocloc, which compiles for a device, and {where}: {RECIPE}")
    done = processes.run([path, "--version"])
    match = re.search(r"\d+\.\d+\.\d+", done.said)
    if done.code or not match:
        raise ToolError(f"ocloc does not tell its version and {processes.ending(done.code)}: {done.said[:300]}", path)
    return Compiler(path, match[0], _igc(Path(path)))


def check_devices(devices: Sequence[str]) -> Compiler:
    """The offline compiler. Raises ToolError for a device that it does not know, with those that it knows."""
    compiler = find()
    for device in devices:
        done = processes.run([compiler.path, "ids", device])
        if done.code:
            known = ", ".join(_known(compiler)) or done.said.strip()
            raise ToolError(
                f"device {device!r} is not known to ocloc {compiler.version}, which knows {known}", compiler.path
            )
    return compiler


def compile_all(
    images: Sequence[DeviceImage], devices: Sequence[str], options: Sequence[str], jobs: int, voice: Voice
) -> list[Machine]:
    """Machine code of each image, in their order. Raises ToolError with what ocloc says of the first that fails."""
    compiler = find()
    pool = ThreadPoolExecutor(max_workers=jobs)
    found: dict[int, Machine] = {}
    try:
        futures = {pool.submit(_one, compiler, image, devices, options, voice): i for i, image in enumerate(images)}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            voice.step(len(found), len(images))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if len(found) < len(images):  # after a failure, or ctrl-C, others may still run
            processes.end_all()
    return [found[i] for i in range(len(images))]


def words_for(image: DeviceImage, options: Sequence[str]) -> tuple[str, ...]:
    """The options of IGC for one image: what its properties ask for, then what the command line adds."""
    facts = {(group, name): value for group, values in image.properties for name, value in values}
    vector = facts.get(("SYCL/misc properties", "isEsimdImage"), 0) == 1
    large = [DOUBLE[vector]] if facts.get(("SYCL/misc properties", "sycl-grf-size")) == 256 else []
    # One name of the option for both compilers: each takes its own.
    given = [DOUBLE[vector] if word in DOUBLE.values() else word for word in options]
    return tuple(dict.fromkeys([*(["-vc-codegen"] if vector else []), *large, *given]))


def _one(
    compiler: Compiler, image: DeviceImage, devices: Sequence[str], options: Sequence[str], voice: Voice
) -> Machine:
    words = words_for(image, options)
    key = cache.digest(compiler.version, compiler.igc, ",".join(devices), "\0".join(words), image.spirv, "1")

    def make() -> Machine:
        kernels = ", ".join(image.entries[:3]) + (" …" if len(image.entries) > 3 else "")
        with scratch() as work:
            code = run(compiler, image.spirv, devices, words, work, what=f", kernel {kernels}", say=voice.say)
        return Machine(code)

    return cache.kept("machine", key, Machine, make)


def run(
    compiler: Compiler, spirv: bytes, devices: Sequence[str], options: Sequence[str], work: str,
    what: str = "", say: Callable[[str], None] = lambda _: None, before: Sequence[str] = (),
) -> bytes:  # fmt: skip
    """Machine code of one module. Raises ToolError with what ocloc says, for `what`; one that breaks off is run again.

    `work`: an empty folder. `before`: words before the command, such as of `env`.
    """
    Path(work, "image.spv").write_bytes(spirv)
    asked = ["-options", " ".join(options)] if options else []
    argv = [*before, compiler.path, "compile", "-spirv_input", "-file", "image.spv", "-device", ",".join(devices),
            "-output_no_suffix", "-output", "machine", *asked]  # fmt: skip
    done = processes.run(argv, work)
    if processes.crashed(done.code) and not NO_MEMORY.search(done.said):
        # Seen once in thousands of modules (std::future_error), and not a second time on the same module.
        how = f"{processes.ending(done.code)} for {','.join(devices)}{what}, and is run once more"
        say(f"icpx: note: ocloc {how}\n{done.said.strip()}")
        done = processes.run(argv, work)
    results = [path for path in Path(work).glob("machine*") if path.suffix in ("", ".bin", ".ar")]
    if done.code or len(results) != 1:
        why = processes.ending(done.code) if done.code else "left no machine code"
        if done.code > 0 and NO_MEMORY.search(done.said):
            why += ", which may be for want of memory (MAX_JOBS sets how many run at once),"
        raise ToolError(f"ocloc {why} for {','.join(devices)}{what}\n{done.said.strip()}", compiler.path)
    return results[0].read_bytes()


def _on_path() -> str | None:
    found = shutil.which("ocloc")
    if found:
        return found
    for folder in os.environ.get("PATH", "").split(os.pathsep):  # Debian's is called by its version
        names = sorted(Path(folder).glob("ocloc-[0-9]*")) if folder else []
        if names:
            return str(names[-1])
    return None


def _fetched() -> str | None:
    path = cache.folder() / FETCHED / "bin" / "ocloc"
    return str(path) if path.is_file() else None


def _igc(ocloc: Path) -> str:
    """The version of the graphics compiler, from the name of its library; empty where it cannot be told."""
    paths = sorted(ocloc.resolve().parents[1].rglob(LIBRARY))
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/local/lib", "/usr/lib64"):
        paths += sorted(Path(folder).glob(LIBRARY))
    return next((match[1] for path in paths if (match := COMPILER.match(path.name))), "")


def _known(compiler: Compiler) -> list[str]:
    said = processes.run([compiler.path, "compile", "--help"]).said
    match = re.search(r"<device_type> can be: (.*?), ip version", said, re.DOTALL)
    return [name.strip() for name in match[1].split(",")] if match else []
