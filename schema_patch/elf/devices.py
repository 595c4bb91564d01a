"""Offload images inside an ELF file -> the code for devices. Knows where SYCL's compilers put images, and how packed.

The linker's table `.tgtimg` has address and size of each image. Without it (stripped, or another linker), images are
looked for by how they begin: in the sections made for them, or, where even section headers are gone, in all that is
loaded. `--offload-compress` makes an image one zstd frame; those are unpacked one at a time, to a file without a name.
Does not know what one image says (zebin.py), nor what people call a target (targets.py).
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from schema_patch.model import ToolError

from . import dynamic, zebin
from .layout import Bytes, Layout, Part, broken, find, release
from .zebin import MachineCode, UnknownFormError

ZSTD = b"\x28\xb5\x2f\xfd"
BUNDLE = b"CCOB"  # clang's own compressed bundles, of HIP
MAGICS = (zebin.ARCHIVE, zebin.SPIRV_MAGIC, zebin.ELF, ZSTD)
IMAGE = struct.Struct("<QQ")
FRAME_CHUNK = 1 << 20
LARGEST = 4 << 30  # of an unpacked image
GAP = 64  # bytes between images that are no more than alignment


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """`images`: how many there are; `unread`: what is there and could not be read, in words."""

    codes: tuple[MachineCode, ...] = ()
    images: int = 0
    unread: tuple[str, ...] = ()

    def kernels(self) -> dict[str, set[str]]:
        """Of each kernel, the targets that it has code for."""
        found: dict[str, set[str]] = {}
        for code in self.codes:
            for kernel in code.kernels:
                found.setdefault(kernel, set()).add(code.target)
        return found

    def targets(self) -> dict[str, int]:
        """Of each target, how many kernels it has."""
        counts: dict[str, set[str]] = {}
        for code in self.codes:
            counts.setdefault(code.target, set()).update(code.kernels)
        return {target: len(kernels) for target, kernels in sorted(counts.items())}


def read(data: Bytes, layout: Layout, dyn: dynamic.Dynamic, where: str, *, hashes: bool = False) -> DeviceCode:
    """All code for devices in a library. Raises ToolError where an image is damaged."""
    codes: list[MachineCode] = []
    places, unread = _places(data, layout, dyn, where)
    for start, end in places:
        try:
            with _unpacked(data, start, end, where) as (image, first, last):
                found = zebin.read(image, first, last, where, hashes=hashes)
                codes += found if image is data else (replace(code, compressed=True) for code in found)
        except UnknownFormError as error:
            unread.append(f"{error} at byte {start}")
        except ToolError as error:
            if layout.named(".tgtimg"):
                raise
            unread.append(f"{error.message} at byte {start}")  # what only looked like an image of SYCL's
        release(data, start, end)
    return DeviceCode(tuple(codes), len(places), tuple(unread))


def images(data: Bytes, layout: Layout, dyn: dynamic.Dynamic, where: str) -> Iterator[bytes]:
    """Each image of the library that is no archive: machine code or SPIR-V. Raises ToolError for what is unreadable."""
    places, _ = _places(data, layout, dyn, where)
    for start, end in places:
        try:
            with _unpacked(data, start, end, where) as (image, first, last):
                for _, begin, stop in zebin.leaves(image, first, last, where):
                    yield image[begin:stop]
        except UnknownFormError as error:
            raise ToolError(f"{error} at byte {start}", where) from error
        release(data, start, end)


def _places(data: Bytes, layout: Layout, dyn: dynamic.Dynamic, where: str) -> tuple[list[tuple[int, int]], list[str]]:
    """Where images lie, and what is in their sections beside them, in words."""
    table = layout.named(".tgtimg")
    if table:
        places = list(_listed(data, layout, dyn, table, where))
    else:
        places = list(_searched(data, layout.device_code() or () if layout.sections else layout.constants, where))
    return places, list(_uncovered(layout, places)) if table or layout.sections else []


def _listed(data: Bytes, layout: Layout, dyn: dynamic.Dynamic, table: Part, where: str) -> Iterator[tuple[int, int]]:
    """The images of the linker's table, whose addresses may only be in the relocations."""
    if (table.end - table.start) % IMAGE.size:
        raise broken("a table of device images", f"{table.end - table.start} bytes", where)
    rows = list(IMAGE.iter_unpack(data[table.start : table.end]))
    if any(not address for address, _ in rows):
        last = table.address + table.end - table.start
        moved = {
            place: addend
            for place, info, addend in dynamic.relocations(data, layout, dyn, where)
            if table.address <= place < last and info & 0xFFFFFFFF == dynamic.RELATIVE
        }
        rows = [(a or moved.get(table.address + i * IMAGE.size, 0), size) for i, (a, size) in enumerate(rows)]
    for address, size in rows:
        start = layout.offset(address, size)
        packed = layout.offset(address, len(ZSTD))
        if packed is not None and data[packed : packed + len(ZSTD)] == ZSTD:  # some tables have the size unpacked
            part = next(part for part in layout.loaded if part.start <= packed < part.end)
            start, size = packed, _frame_end(data, packed, part.end) - packed
            if not size:
                raise broken("a whole frame of zstd", f"one cut at byte {part.end}", where)
        if start is None:
            raise broken("a device image inside the file", f"{size} bytes at address {address:#x}", where)
        release(data, start, start + size)
        yield start, start + size


def _searched(data: Bytes, parts: tuple[Part, ...], where: str) -> Iterator[tuple[int, int]]:
    """Images found by how they begin. What only looks like one is passed over: a linker has such strings too."""
    for part in parts:
        at = part.start + (1 if part.start == 0 else 0)  # the library's own header begins as a device's does
        following = {magic: find(data, magic, at, part.end) for magic in MAGICS}
        while any(place >= 0 for place in following.values()):
            start, magic = min((place, magic) for magic, place in following.items() if place >= 0)
            end = _end(data, magic, start, part.end, where)
            if end > start:
                yield start, end
            at = max(end, start + 1)
            release(data, part.start, part.end)  # where an image ends is looked for far behind it
            following = {
                magic: find(data, magic, at, part.end) if 0 <= place < at else place
                for magic, place in following.items()
            }


def _end(data: Bytes, magic: bytes, start: int, limit: int, where: str) -> int:
    if magic == zebin.SPIRV_MAGIC:
        return zebin.spirv_end(data, start, limit)
    if magic == zebin.ELF:
        return zebin.elf_end(data, start, limit)
    if magic == ZSTD:
        return _frame_end(data, start, limit)
    end = start
    try:
        for name, _, end in zebin.members(data, start, limit, where):  # noqa: B007 - the last end counts
            pass
    except ToolError:
        return end  # behind the last member comes what is no member
    return end


def _uncovered(layout: Layout, places: list[tuple[int, int]]) -> Iterator[str]:
    """What lies in a section of device code and belongs to no image."""
    for part in layout.device_code():
        at = part.start
        for start, end in sorted(place for place in places if part.start <= place[0] < part.end):
            if start - at > GAP:
                yield f"{start - at} bytes of {part.name} that belong to no image"
            at = max(at, end)
        if part.end - at > GAP:
            yield f"{part.end - at} bytes of {part.name} that belong to no image"


@contextmanager
def _unpacked(data: Bytes, start: int, end: int, where: str) -> Iterator[tuple[Bytes, int, int]]:
    """The image itself, or what its zstd frame holds."""
    magic = data[start : start + 4]
    if magic == BUNDLE:
        raise UnknownFormError("a compressed bundle of clang")
    if magic != ZSTD:
        yield data, start, end
        return
    with tempfile.TemporaryFile() as file:
        size = 0
        for piece in _pieces(data, start, end, where):
            size += len(piece)
            if size > LARGEST:
                raise broken(f"an image of at most {LARGEST} bytes", "a larger one", where)
            file.write(piece)
        file.flush()
        if not size:
            raise broken("a compressed device image", "one of no bytes", where)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            yield image, 0, size


def _pieces(data: Bytes, start: int, end: int, where: str) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise UnknownFormError("an image compressed with zstd (install zstandard to have it read)") from error
    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        for at in range(start, end, FRAME_CHUNK):
            yield frame.decompress(data[at : min(at + FRAME_CHUNK, end)])
            if frame.eof:
                return
    except zstandard.ZstdError as error:
        raise broken("a device image compressed with zstd", str(error), where) from error
    raise broken("a whole frame of zstd", f"one cut at byte {end}", where)


def _frame_end(data: Bytes, start: int, limit: int) -> int:
    """Where a zstd frame ends, by its block headers (RFC 8878); `start` itself if it is none."""
    flags = data[start + 4]
    single = flags >> 5 & 1
    at = start + 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    while at + 3 <= limit:
        header = int.from_bytes(data[at : at + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind == 3:
            return start
        at += 3 + (1 if kind == 1 else size)
        if header & 1:
            at += 4 * (flags >> 2 & 1)
            return at if at <= limit else start
    return start
