"""A second reader of the same file: lief. What it sees otherwise than we do, one of the two sees wrongly.

The one door to lief. It may read a file only after layout.py has proved that whole: lief takes cut files for whole
ones. It takes a file into memory, so that one larger than LARGEST is not read a second time, which the report says.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence

from schema_patch.model import Span

from . import dynamic
from .layout import SHT_NOBITS, SHT_NULL, prove_whole
from .reader import mapped

LARGEST = 256 << 20  # bytes
SHOWN = 3  # names in one message


def too_large(path: str) -> bool:
    """Whether a file is larger than is given to lief."""
    return os.path.getsize(path) > LARGEST


def differences(path: str, where: str) -> list[str]:
    """What lief reads otherwise, in words: needed libraries, name, run path, sections, exported symbols."""
    if too_large(path):
        return []
    import lief

    lief.logging.disable()
    binary = lief.ELF.parse(path)
    if binary is None:
        return ["headers, which lief cannot read"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # kinds of sections that lief has no name for
        ours, theirs = _ours(path, where), _theirs(binary)
    return [f"{what}: {_some(ours[what], theirs[what])}" for what in ours if sorted(ours[what]) != sorted(theirs[what])]


def misplaced(path: str, spans: Sequence[Span]) -> list[str]:
    """The places of bytes that are loaded elsewhere by lief's reading than by ours, in words."""
    if too_large(path):
        return []
    import lief

    binary = lief.ELF.parse(path)
    with mapped(path, path) as data:
        layout = prove_whole(data, path)
    found = []
    for at in (at for span in spans for at in (span.start, span.end - 1)):
        address = layout.address(at)
        if address is None or binary is None or binary.virtual_address_to_offset(address) != at:
            found.append(f"place of byte {at:#x}")
    return found


def _ours(path: str, where: str) -> dict[str, list[str]]:
    with mapped(path, where) as data:
        layout = prove_whole(data, where)
        dyn = dynamic.read(data, layout, where)
        symbols = dynamic.symbols(data, layout, dyn, where)
        return {
            "needed libraries": list(dyn.needed),
            "name": [dyn.soname] if dyn.soname else [],
            "run path": [dyn.runpath] if dyn.runpath else [],
            "sections": [
                _section(p.name, p.start, p.end) for p in layout.sections if p.kind not in (SHT_NULL, SHT_NOBITS)
            ],
            "exported symbols": [symbol.name for symbol in symbols],
        }


def _theirs(binary: object) -> dict[str, list[str]]:
    import lief

    assert isinstance(binary, lief.ELF.Binary)
    names: list[str] = []
    run: dict[bool, str] = {}
    for entry in binary.dynamic_entries:
        if isinstance(entry, lief.ELF.DynamicSharedObject):
            names.append(str(entry.name))
        elif isinstance(entry, lief.ELF.DynamicEntryRunPath):
            run.setdefault(True, str(entry.runpath))
        elif isinstance(entry, lief.ELF.DynamicEntryRpath):
            run.setdefault(False, str(entry.rpath))
    sections = [s for s in binary.sections if int(s.type) not in (SHT_NULL, SHT_NOBITS)]
    return {
        "needed libraries": [str(name) for name in binary.libraries],
        "name": names,
        "run path": [path for path in (run.get(True, run.get(False, "")),) if path],
        "sections": [_section(_plain(s.name), s.file_offset, s.file_offset + s.size) for s in sections],
        "exported symbols": list(_exported(binary)),
    }


def _exported(binary: object) -> Iterator[str]:
    import lief

    assert isinstance(binary, lief.ELF.Binary)
    for symbol in binary.dynamic_symbols:
        if symbol.value and symbol.shndx and symbol.binding != lief.ELF.Symbol.BINDING.LOCAL:
            yield _plain(symbol.name)


def _plain(name: str | bytes) -> str:
    """A name as our reader spells it: lief gives bytes where they are no UTF-8."""
    return (name.encode() if isinstance(name, str) else name).decode("ascii", "backslashreplace")


def _section(name: str, start: int, end: int) -> str:
    return f"{name} {start:#x}-{end:#x}"


def _some(ours: list[str], theirs: list[str]) -> str:
    mine, other = sorted({*ours} - {*theirs})[:SHOWN], sorted({*theirs} - {*ours})[:SHOWN]
    return f"{', '.join(mine) or 'nothing'} by our reader, {', '.join(other) or 'nothing'} by lief"
