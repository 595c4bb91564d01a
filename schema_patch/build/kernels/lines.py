"""Debug information of a device's ELF file -> the source line of each offset in each kernel."""

from __future__ import annotations

import bisect
import io
import os
from dataclasses import dataclass, field
from typing import Any

TEXT = ".text."
SYCL = b"/include/sycl"
SIZES = {1: 8, 2: 4}  # bytes of R_ZE_SYM_ADDR and R_ZE_SYM_ADDR_32, which pyelftools does not know


@dataclass(slots=True)
class Lines:
    """Of one kernel: offsets, ascending, and the line of each until the next."""

    offsets: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def at(self, offset: int) -> str:
        """`file:line`; empty where it is not known."""
        index = bisect.bisect_right(self.offsets, offset) - 1
        return self.places[index] if index >= 0 else ""

    @property
    def first(self) -> str:
        """Where the kernel's own code begins."""
        return next((place for place in self.places if place), "")


def read(code: bytes) -> dict[str, Lines]:
    """Of each kernel that there is debug information about."""
    if b".debug_line\0" not in code:
        return {}
    from elftools.elf.elffile import ELFFile

    elf: Any = ELFFile(io.BytesIO(_relocated(code)))
    owners = _owners(elf)
    if not all(owners):
        return {}
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    found: dict[str, Lines] = {}
    sequence = 0
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        for entry in program.get_entries() if program else ():
            state = entry.state
            if state is None:
                continue
            if sequence >= len(owners):
                return found
            lines = found.setdefault(owners[sequence], Lines())
            lines.offsets.append(state.address)
            file = "" if state.end_sequence or not state.line else _file(program.header, state.file)
            lines.places.append(f"{file}:{state.line}" if file else "")
            sequence += state.end_sequence
    return found


def _relocated(code: bytes) -> bytes:
    """The same file, whose units of debug information point to their line tables."""
    from elftools.elf.elffile import ELFFile

    elf: Any = ELFFile(io.BytesIO(code))
    units, table = (elf.get_section_by_name(f"{kind}.debug_info") for kind in ("", ".rela"))
    data = bytearray(code)
    for row in table.iter_relocations() if units and table else ():
        if size := SIZES.get(row["r_info_type"]):
            at = units["sh_offset"] + row["r_offset"]
            data[at : at + size] = row["r_addend"].to_bytes(size, "little")
    return bytes(data)


def _owners(elf: Any) -> list[str]:
    """The kernels of the line table's sequences, in their order: each begins with an address that is relocated.

    By the symbol's name: its section is another's number in what IGC 2.40 writes. That also loses a name now and then,
    and the vector compiler has none; such a sequence is of the section in its place, if every name that is there
    stands in its section's place.
    """
    table = elf.get_section_by_name(".rela.debug_line") or elf.get_section_by_name(".rel.debug_line")
    symbols = elf.get_section_by_name(".symtab")
    if not table or not symbols:
        return []
    kernels = [section.name.removeprefix(TEXT) for section in elf.iter_sections() if section.name.startswith(TEXT)]
    named = [symbols.get_symbol(row["r_info_sym"]).name.removeprefix(TEXT) for row in table.iter_relocations()]
    in_order = len(named) == len(kernels) and all(
        name in ("", kernel) for name, kernel in zip(named, kernels, strict=False)
    )
    return kernels if in_order else named


def _file(header: Any, index: int) -> str:
    """The name of a file; empty for a header of SYCL, which is nobody's own line."""
    old = header.version < 5
    entry = header.file_entry[index - 1 if old else index]
    folders = [b"", *header.include_directory] if old else header.include_directory
    folder = folders[entry.dir_index] if entry.dir_index < len(folders) else b""
    return "" if SYCL in folder else str(os.path.basename(entry.name.decode("utf-8", "replace")))
