"""Machine code of one device -> the assembly of each kernel in it, as `ocloc disasm` writes it.

And SPIR-V compiled once more for what the compiler tells only in its dump: how often registers of one bank are read at
once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from schema_patch.model import ToolError

from . import cache, objects, offline, processes
from .processes import scratch

TEXT = ".text."
CONFLICTS = re.compile(r"^//\.kernel (\S+)$.*?^//\.BankConflicts: (\d+)$", re.MULTILINE | re.DOTALL)


class Compiled(msgspec.Struct, frozen=True):
    """An ELF file of machine code, and the bank conflicts that the compiler counted in each kernel."""

    code: bytes
    conflicts: dict[str, int]


def listings(code: bytes, device: str) -> dict[str, str]:
    """The assembly of each kernel. Raises ToolError where ocloc cannot read the code."""
    compiler = offline.find()
    renamed, kernels = _numbered(code)
    with scratch() as work:
        Path(work, "code").write_bytes(renamed)
        argv = [compiler.path, "disasm", "-file", "code", "-dump", "dump", "-device", device]
        done = processes.run(argv, work)
        texts = {
            name: path.read_text("utf-8", "replace")
            for number, name in enumerate(kernels)
            if (path := Path(work, "dump", f"{TEXT}{number}.asm")).is_file()
        }
    if done.code or not texts:
        why = processes.ending(done.code) if done.code else "left no assembly"
        raise ToolError(f"ocloc disasm {why} for {device}\n{done.said.strip()}".rstrip(), compiler.path)
    return texts


def _numbered(code: bytes) -> tuple[bytes, list[str]]:
    """The same code with kernels called by their numbers, and their names: ocloc calls files by them, however long."""
    names = [name for name, _ in objects.sections(code, "machine code") if name.startswith(TEXT)]
    for number, name in enumerate(names):
        short = f"{TEXT}{number}\0".encode()
        if len(short) <= len(name) + 1:
            code = code.replace(f"\0{name}\0".encode(), b"\0" + short.ljust(len(name) + 1, b"\0"))
    return code, [name.removeprefix(TEXT) for name in names]


def compiled(spirv: bytes, device: str, options: Sequence[str]) -> Compiled:
    """Machine code of one SPIR-V module. Raises ToolError with what ocloc says."""
    compiler = offline.find()
    key = cache.digest(compiler.version, compiler.igc, device, "\0".join(options), spirv, "1")
    return cache.kept("dumped", key, Compiled, lambda: _dumped(compiler, spirv, device, options))


def _dumped(compiler: offline.Compiler, spirv: bytes, device: str, options: Sequence[str]) -> Compiled:
    with scratch() as work:
        dump = Path(work, "dump")
        dump.mkdir()
        dumped = ("env", "IGC_ShaderDumpEnable=1", f"IGC_DumpToCustomDir={dump}")
        code = offline.run(compiler, spirv, [device], options, work, before=dumped)
        conflicts: dict[str, int] = {}
        for path in sorted(dump.glob("*.asm")):  # of widths that were tried, the last counts
            text = path.read_text("utf-8", "replace")
            conflicts.update((name, int(count)) for name, count in CONFLICTS.findall(text))
    return Compiled(code, conflicts)
