"""What a library hands to the SYCL runtime when it is loaded, read from its file: a reader of its own, for tests alone.

The tables are those of intel/llvm, sycl/source/detail/compiler.hpp; pointers are where the relocations put them. Reads the
descriptor that the symbol table names, as unstripped libraries have it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

DESCRIPTOR = ".sycl_offloading.descriptor"
RELATIVE = 8
WITH_MANIFEST = 96  # bytes of one image's row in versions 1 and 2
WITHOUT = 80


@dataclass(frozen=True)
class DeviceImage:
    version: int
    kind: int
    format: int
    target: str
    options: tuple[str, str]
    section: str
    data: bytes
    entries: tuple[str, ...]
    properties: tuple[tuple[str, tuple[tuple[str, int, int | bytes], ...]], ...]


class Library:
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            elf = ELFFile(file)
            self.data = bytearray(path.read_bytes())
            self.sections = [
                (s.name, s["sh_addr"], s["sh_offset"], s["sh_size"])
                for s in elf.iter_sections()
                if s["sh_flags"] & 2 and s["sh_type"] != "SHT_NOBITS"
            ]
            relocations = elf.get_section_by_name(".rela.dyn")
            for row in relocations.iter_relocations():
                if row["r_info_type"] == RELATIVE and (at := self._offset(row["r_offset"])) is not None:
                    struct.pack_into("<Q", self.data, at, row["r_addend"])
            (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name(DESCRIPTOR)
            self.start = symbol["st_value"]
            names = elf.get_section_by_name(".tgtsym")
            self.symbols = names.data().split(b"\0")[:-1] if names else []
            table = elf.get_section_by_name(".tgtimg")
            self.table = table["sh_addr"], table["sh_size"] // 16

    def images(self) -> list[DeviceImage]:
        version, count, _, rows, *_ = self._read("HHIQQQ", self.start)
        assert version == 1
        if not count:
            return []
        step = WITH_MANIFEST if self._read("H", rows)[0] < 3 else WITHOUT
        return [self._image(rows + i * step, step) for i in range(count)]

    def listed(self) -> list[bytes]:
        """The images as the table `.tgtimg` has them."""
        start, count = self.table
        places = [self._read("QQ", start + 16 * i) for i in range(count)]
        return [self._bytes(address, size) for address, size in places]

    def _image(self, at: int, step: int) -> DeviceImage:
        version, kind, form = self._read("HBB", at)
        target, compile_options, link_options, *more = self._read("9Q" if step == WITHOUT else "11Q", at + 8)
        begin, end, entries, entries_end, sets, sets_end = more[-6:]
        return DeviceImage(
            version, kind, form, self._text(target), (self._text(compile_options), self._text(link_options)),
            next(name for name, address, _, size in self.sections if address <= begin < address + size),
            self._bytes(begin, end - begin),
            tuple(self._text(self._read("QQ", place)[1]) for place in range(entries, entries_end, 32)),
            tuple(self._set(place) for place in range(sets, sets_end, 24)),
        )  # fmt: skip

    def _set(self, at: int) -> tuple[str, tuple[tuple[str, int, int | bytes], ...]]:
        name, begin, end = self._read("QQQ", at)
        rows = [self._read("QQQQ", place) for place in range(begin, end, 32)]
        return self._text(name), tuple(
            (self._text(key), kind & 0xFFFFFFFF, self._bytes(value, size) if value else size)
            for key, value, kind, size in rows
        )

    def _offset(self, address: int) -> int | None:
        for _, start, offset, size in self.sections:
            if start <= address < start + size:
                return address - start + offset
        return None

    def _read(self, form: str, address: int) -> tuple[int, ...]:
        at = self._offset(address)
        assert at is not None, hex(address)
        return struct.unpack_from(f"<{form}", self.data, at)

    def _bytes(self, address: int, size: int) -> bytes:
        at = self._offset(address)
        assert at is not None or not size, hex(address)
        return bytes(self.data[at : at + size]) if size else b""

    def _text(self, address: int) -> str:
        at = self._offset(address)
        assert at is not None, hex(address)
        return self.data[at : self.data.index(0, at)].decode()
