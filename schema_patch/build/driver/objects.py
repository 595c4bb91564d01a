"""The device side inside an object file: what the compile step leaves there, and the device link takes out again.

A section that every linker drops from what it links (SHF_EXCLUDE), so that an object may go through any build system.
Knows sections and archives; does not know what an image says.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import msgspec

from schema_patch.elf import zebin
from schema_patch.elf.layout import HEADER, SECTION, SHT_NOBITS
from schema_patch.model import ToolError

from .arguments import Kernel
from .frontend import DeviceImage

SECTION_NAME = ".schema_patch.sycl"
FORMAT = 1


class Payload(msgspec.Struct, frozen=True):
    """The device side of one source. `runtime`: the library that it was compiled for."""

    source: str
    runtime: str
    front_end: str
    images: tuple[DeviceImage, ...]
    kernels: tuple[Kernel, ...]
    format: int = FORMAT


def assembly(path: str) -> str:
    """C++ that puts the bytes of a file into the section."""
    return (
        f'__asm__(".pushsection {SECTION_NAME},\\"e\\",@progbits\\n"\n'
        f'        ".incbin \\"{path}\\"\\n"\n'
        '        ".popsection\\n");\n'
    )


def payloads(path: str) -> Iterator[Payload]:
    """What an object, or each object of an archive, holds; nothing where it has no device side."""
    if path.endswith(".so") or ".so." in os.path.basename(path):
        return
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ToolError(f"cannot read: {error.strerror}", path) from error
    for part in elf_files(data, path):
        for name, content in sections(part, path):
            if name == SECTION_NAME:
                yield from _decoded(content, path)


def elf_files(data: bytes, where: str) -> Iterator[bytes]:
    """The file itself, or the members of an archive, of those that are ELF."""
    for _, start, end in zebin.leaves(data, 0, len(data), where):
        if data.startswith(zebin.ELF, start):
            yield data[start:end]


def _decoded(content: bytes, path: str) -> Iterator[Payload]:
    """A linker that joins objects joins their sections: each payload is preceded by its length."""
    at = 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        try:
            payload = msgspec.msgpack.decode(content[at + 8 : at + 8 + size], type=Payload)
        except msgspec.MsgspecError as error:
            raise ToolError(f"the section {SECTION_NAME} cannot be read: compile again ({error})", path) from error
        if payload.format != FORMAT:
            raise ToolError(f"compiled by another version of this driver ({payload.format}): compile again", path)
        yield payload
        at += 8 + size


def encoded(payload: Payload) -> bytes:
    data = msgspec.msgpack.encode(payload)
    return struct.pack("<Q", len(data)) + data


def sections(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each section of an ELF file of 64 bits."""
    try:
        header = HEADER.unpack_from(data, 0)
        offset, size, count, names = header[6], header[-3], header[-2], header[-1]
        rows = [SECTION.unpack_from(data, offset + i * size) for i in range(count)]
        text = data[rows[names][4] : rows[names][4] + rows[names][5]] if rows else b""
    except (struct.error, IndexError) as error:
        raise ToolError(f"expected an object file, found a damaged one ({error})", where) from error
    for name, kind, _, _, start, length, *_ in rows:
        yield (
            text[name : text.find(b"\0", name)].decode("ascii", "replace"),
            (b"" if kind == SHT_NOBITS else data[start : start + length]),
        )
