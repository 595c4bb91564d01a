"""SYCL source -> SPIR-V images with their properties, and the headers by which host code knows the kernels.

The front end is the one inside the SYCL runtime (jit.py calls it): being part of the runtime, it cannot be of another
release. Besides images it writes what DPC++'s own driver gives to a host compiler: the integration header, with name,
argument table and size of each kernel, and the footer, with specialization constants and device globals.
Knows nothing of machine code, nor of how a library carries images.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from schema_patch.model import ToolError

from . import builtins, cache, layouts, places
from .processes import scratch
from .runtime import Runtime

# The libraries that the front end links to what needs them, each made of a part of device_library.cpp or of nothing.
LIBRARIES = {
    "libsycl-crt": "SCHEMA_PATCH_RUNTIME",
    "libsycl-cmath": "SCHEMA_PATCH_MATHEMATICS",
    **dict.fromkeys(
        ("libsycl-cmath-fp64", "libsycl-complex", "libsycl-complex-fp64", "libsycl-imf", "libsycl-imf-fp64",
         "libsycl-imf-bf16"), ""),
}  # fmt: skip
IDENTITY = "identity"  # in a toolchain's folder: a digest of the front end
NO_LIBRARIES = "-fno-sycl-device-lib=all"
SAYS_DEPRECATED = re.compile(r"^warning: option '-fno-sycl-device-lib=\w+' is deprecated.*\n", re.MULTILINE)
NEEDS_EXTENSION = re.compile(r"requires the following SPIR-V extension:\s+(\w+)")
PREAMBLE = re.compile(r"\A(?:Device compilation failed|Hashing failed)\nDetailed information:\n\t", re.MULTILINE)

Properties = list[tuple[str, list[tuple[str, int | bytes]]]]


class DeviceImage(msgspec.Struct, frozen=True):
    """One device image: which kernels it has, and what the runtime must know of it (set, name, value)."""

    spirv: bytes
    entries: tuple[str, ...]
    properties: Properties


class Device(msgspec.Struct, frozen=True):
    """The device side of one source file. `dependencies`: files that it was made from, as places.py tells them."""

    images: tuple[DeviceImage, ...]
    header: str
    footer: str
    log: str
    dependencies: tuple[str, ...]
    layouts: layouts.Layouts = {}
    cached: bool = False


def compile_device(source: str, words: Sequence[str], runtime: Runtime) -> Device:
    """Raises ToolError with what the front end says, each message at its line of the source."""
    text = _text(source)
    # .sycl is no suffix that the front end knows.
    words = ("-x", "c++", *builtins.RENAMED, *words)
    if brings_libraries(runtime):
        words = (*words, "-include", str(resources.files(__package__) / "bfloat16.hpp"))
    root = toolchain(runtime)
    job = {"library": str(root / "lib" / "libsycl-jit.so"), "name": source, "text": text}
    folders = places.hidden(words)
    answer = _ask({**job, "action": "digest", "words": words}, source)
    if not answer["digest"]:
        raise ToolError(_said(answer["log"]))
    # Of what the preprocessor leaves; the rest of the answer is one of the words, with the places that they name.
    text_digest = answer["digest"].partition("=")[0]
    kept_words = msgspec.json.encode(places.portable(words))
    key = cache.digest(text_digest, (root / IDENTITY).read_text(), places.told(source, folders), kept_words, "5")
    kept = cache.load("device", key, Device)
    if kept is not None:
        seen = tuple(places.found(path, folders) for path in kept.dependencies)
        return msgspec.structs.replace(kept, dependencies=seen, cached=True)
    device = _compile(job, words, source)
    seen = tuple(places.told(path, folders) for path in device.dependencies)
    cache.store("device", key, msgspec.structs.replace(device, dependencies=seen))
    return device


def toolchain(runtime: Runtime) -> Path:
    """A folder in which the front end finds its headers and device libraries; made once for each runtime."""
    library = Path(runtime.library)
    sources = resources.files(__package__)
    text = (sources / "device_library.cpp").read_text("utf-8")
    parts = text + (sources / "bfloat16.hpp").read_text("utf-8")
    front_end = library / "libsycl-jit.so"
    facts = front_end.stat()  # a large file, which a package installs and nobody edits
    place = f"{front_end} {facts.st_size} {facts.st_mtime_ns}"
    key = cache.digest(place, runtime.include, runtime.version, parts, "2")[:20]

    def make(folder: Path) -> None:
        (folder / "bin").mkdir()  # from where it searches
        (folder / "lib").mkdir()
        (folder / "include").symlink_to(runtime.include)
        # By content, for what is compiled: another environment may have the very same front end.
        (folder / IDENTITY).write_text(cache.digest(front_end.read_bytes(), runtime.version, parts))
        for entry in library.iterdir():
            if ".so" in entry.name or entry.name == "clang":
                (folder / "lib" / entry.name).symlink_to(entry)
        if brings_libraries(runtime):
            return
        for name, part in LIBRARIES.items():
            words = ["-x", "c++", NO_LIBRARIES, "-isystem", runtime.include, f"-I{sources}"]
            words += [f"-D{part}"] if part else []
            job = {"library": str(folder / "lib" / "libsycl-jit.so"), "name": "device_library.cpp", "text": text}
            with scratch() as out:
                answer = _ask({**job, "action": "compile", "words": words, "bitcode": True, "out": out}, name)
                if answer["error"]:
                    raise ToolError(_said(answer["log"]))
                shutil.copyfile(Path(out, "module.bc"), folder / "lib" / f"{name}.bc")

    return cache.made("frontend", f"{runtime.version}-{key}", make)


def brings_libraries(runtime: Runtime) -> bool:
    """From 2026 on the front end has headers and device libraries in itself; bfloat16's it leaves to the runtime."""
    return int(runtime.major) >= 9


def _compile(job: dict[str, Any], words: Sequence[str], source: str) -> Device:
    with scratch() as out:
        header, footer, depends = (os.path.join(out, name) for name in ("header.h", "footer.h", "depends.d"))
        extra = [f"-fsycl-int-header={header}", f"-fsycl-int-footer={footer}", "-dependency-file", depends, "-MT", "_",
                 "-sys-header-deps"]  # fmt: skip
        asked = [*words, *(word for one in extra for word in ("-Xclang", one)), *layouts.DUMP]
        answer = _ask({**job, "action": "compile", "words": asked, "bitcode": False, "out": out}, source)
        log = _said(answer["log"])
        if answer["error"]:
            raise ToolError(log)
        written = _read(header)
        return Device(
            images=tuple(_image(row, source) for row in answer["images"]),
            header=written,
            footer=_read(footer),
            log=log,
            dependencies=tuple(dependencies(_read(depends))),
            layouts=layouts.read(_read(os.path.join(out, "said")), layouts.classes(written)),
        )


def _image(row: dict[str, Any], source: str) -> DeviceImage:
    if row["format"] != 2:
        raise ToolError(f"expected SPIR-V from the front end, found an image of format {row['format']}", source)
    properties: Properties = [
        (name, sorted((key, value if isinstance(value, int) else bytes.fromhex(value)) for key, value in values))
        for name, values in row["properties"]
    ]
    return DeviceImage(builtins.written(Path(row["path"]).read_bytes(), source), tuple(row["entries"]), properties)


def _ask(job: dict[str, Any], what: str) -> Any:
    """One answer of jit.py. A front end that is ended from outside ends nothing else, and leaves no file."""
    argv = [sys.executable, "-I", str(resources.files(__package__) / "jit.py")]
    with scratch() as folder:
        env = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(argv, input=json.dumps(job).encode(), capture_output=True, check=False, env=env)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        if extension := NEEDS_EXTENSION.search(said):
            why = f"device code needs the SPIR-V extension {extension[1]}, which the front end does not write"
            raise ToolError(why, what)
        if done.returncode == -signal.SIGKILL:
            why = "was killed, most likely for want of memory: fewer compilers at once (MAX_JOBS) need less"
        elif done.returncode < 0:
            why = f"ended with signal {-done.returncode}: a bug of the front end"
        else:
            why = "could not be run"
        raise ToolError(f"the SYCL front end {why}{f'; its last words: {said[-2000:]}' if said else ''}", what)
    return json.loads(done.stdout)


def _said(log: str) -> str:
    """What the front end says, less what our own options make it say."""
    return SAYS_DEPRECATED.sub("", PREAMBLE.sub("", log)).strip("\n")


def dependencies(rule: str) -> Iterable[str]:
    """The files of a make rule, less its target."""
    _, _, files = rule.replace("\\\n", " ").partition(":")
    for word in re.findall(r"(?:[^\s\\]|\\.)+", files):
        yield re.sub(r"\\(.)", r"\1", word).replace("$$", "$")


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "surrogateescape")
    except FileNotFoundError:  # of a source without kernels
        return ""


def _text(source: str) -> str:
    try:
        return Path(source).read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise ToolError(f"cannot read: {error.strerror}", source) from error
