"""A library, a wheel, a file of device code or a source -> images: machine code or SPIR-V, one after another.

Knows where images come from; does not know what one says of its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schema_patch.build.driver import frontend, offline, options, runtime
from schema_patch.build.driver.compiling import WITH_LINES
from schema_patch.elf import devices, dynamic, reader, targets, zebin
from schema_patch.elf.layout import prove_whole
from schema_patch.elf.zebin import SPIRV, MachineCode
from schema_patch.installed import packages
from schema_patch.model import ToolError

from . import tree

NATIVE_HEAD = (bytes((zebin.INTEL_GPU, 0)), bytes((zebin.NO_MACHINE, 0)))  # e_machine
MACHINE_AT = 18


@dataclass(frozen=True, slots=True)
class FoundImage:
    """One image. `where`: what reports call its file. `options`: what it was or is to be compiled with, if known."""

    where: str
    data: bytes
    codes: tuple[MachineCode, ...]
    options: tuple[str, ...] = ()

    @property
    def spirv(self) -> bool:
        """Whether it is SPIR-V and no machine code."""
        return all(code.target == SPIRV for code in self.codes)

    def runs(self, ip: str) -> bool:
        """Whether it has machine code that a device runs as it is."""
        return any(targets.runs(code.target, ip) for code in self.codes if code.target != SPIRV)

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kernel for code in self.codes for kernel in code.kernels))


def find(path: Path, words: Sequence[str], ips: Sequence[str], progress: Callable[[str], None]) -> Iterator[FoundImage]:
    """The images of what lies at `path`. `words`: for the front end, where it is source. Raises ToolError."""
    if path.is_dir() and any((path / name).is_file() for name in tree.PROJECT):
        with tree.built(path, ips, progress) as wheel:
            yield from _installed(str(wheel), progress, {str(wheel.parent): str(path)})
        return
    if path.is_file() and path.suffix in options.SOURCES:
        yield from _compiled(str(path), words)
        return
    start = _start(path)
    if start.startswith(zebin.SPIRV_MAGIC) or (start.startswith(zebin.ELF) and start[MACHINE_AT:] in NATIVE_HEAD):
        yield image(str(path), path.read_bytes())
    else:
        yield from _installed(str(path), progress, {})


def image(where: str, data: bytes, words: Sequence[str] = ()) -> FoundImage:
    """Machine code or SPIR-V as an image of its own."""
    return FoundImage(where, data, tuple(zebin.read(data, 0, len(data), where)), tuple(words))


def _start(path: Path) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MACHINE_AT + 2)
    except OSError as error:
        raise ToolError(f"cannot be read: {error.strerror}", str(path)) from error


def _compiled(source: str, words: Sequence[str]) -> Iterator[FoundImage]:
    standard = [] if any(word.startswith("-std=") for word in words) else ["-std=c++20"]
    asked = [*standard, frontend.NO_LIBRARIES, *words, *WITH_LINES]
    for made in frontend.compile_device(source, asked, runtime.find()).images:
        yield image(source, made.spirv, offline.words_for(made, ()))


def _installed(path: str, progress: Callable[[str], None], names: dict[str, str]) -> Iterator[FoundImage]:
    installed = packages.find(path)
    if installed.errors:
        raise installed.errors[0]
    for library in (one for one in installed.libraries if not one.hidden):
        where = library.path
        for old, new in names.items():
            where = where.replace(old, new)
        progress(where)
        with packages.local(library) as file, reader.mapped(file, where) as data:
            layout = prove_whole(data, where)
            for found in devices.images(data, layout, dynamic.read(data, layout, where), where):
                yield image(where, found)
