"""The argument table of each kernel: from the integration header, held against the types of its SPIR-V function.

Host code copies a kernel's arguments out of the kernel object by this table: kind, size and offset of each. It comes
from the front end, which has laid the object out. That the host compiler lays it out alike, SYCL's own headers assert
where the host side is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from schema_patch.model import ToolError

from . import symbols
from .frontend import Device, Image
from .integration import INFO, returned
from .spirv import Kernel as Compiled
from .spirv import read

ACCESSOR, VALUE, POINTER, STREAM = "accessor", "std_layout", "pointer", "stream"
TARGET = (1 << 11) - 1  # bits of an accessor's number; above them are its dimensions
BUFFERS = frozenset({2014, 2015, 2016})  # global, constant and local memory; the other targets are images
# Device arguments that one accessor becomes: its address, two ranges, an offset. A stream is three of them and a size.
_ACCESSOR: tuple[tuple[int | None, bool | None], ...] = ((8, True), (None, False), (None, False), (None, False))

_SIGNATURE = re.compile(r"//--- (\S+)\n((?:  \{.*\},?[ ]*\n)*)")
_PARAMETER = re.compile(r"kernel_param_kind_t::kind_(\w+), (-?\d+), (-?\d+)")


class Argument(msgspec.Struct, frozen=True):
    """`size` in bytes, or for an accessor its target; `offset`: where in the kernel object its value lies."""

    kind: str
    size: int
    offset: int


class Kernel(msgspec.Struct, frozen=True):
    """A kernel as host code knows it. `file`, `line`: where its object's class is, without the folder."""

    name: str
    file: str
    line: int
    column: int
    size: int
    esimd: bool
    arguments: tuple[Argument, ...]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.file else "a function"


def kernels(device: Device, source: str) -> dict[str, Kernel]:
    """All kernels of a source, checked. Raises ToolError where table and code do not agree, with the kernel's place."""
    table = {kernel.name: kernel for kernel in _table(device.header)}
    for image in device.images:
        module = read(image.spirv, source)
        symbols.check(module.imports, image.entries, source)
        masks = _masks(image)
        for compiled in module.kernels:
            if compiled.name not in table:
                if compiled.name not in image.entries:
                    continue
                raise ToolError(f"kernel {compiled.name} is in the device code and not in its header", source)
            _agree(table[compiled.name], compiled, masks.get(compiled.name), source)
    return table


def _table(header: str) -> Iterator[Kernel]:
    arguments = {
        name: tuple(Argument(kind, int(size), int(offset)) for kind, size, offset in _PARAMETER.findall(rows)
                    if kind != "invalid")
        for name, rows in _SIGNATURE.findall(header)
    }  # fmt: skip
    infos = {returned(block, "getName"): block for block in INFO.findall(header)}
    for name, rows in arguments.items():
        block = infos.get(name, "")  # a function that is a kernel has no class, and so no place of one
        yield Kernel(
            name=name,
            file=returned(block, "getFileName"),
            line=int(returned(block, "getLineNumber") or 0),
            column=int(returned(block, "getColumnNumber") or 0),
            size=int(returned(block, "getKernelSize") or 0),
            esimd=returned(block, "isESIMD") == "1",
            arguments=rows,
        )


def _masks(image: Image) -> Mapping[str, tuple[bool, ...]]:
    """Of each kernel, which of its device arguments the front end took away: 64 bits of how many, then a bit each."""
    found = {}
    for group, values in image.properties:
        if group == "SYCL/kernel param opt":
            for name, value in values:
                assert isinstance(value, bytes)
                count = int.from_bytes(value[:8], "little")
                bits = int.from_bytes(value[8:], "little")
                found[name] = tuple(bool(bits >> i & 1) for i in range(count))
    return found


def _agree(kernel: Kernel, compiled: Compiled, mask: tuple[bool, ...] | None, source: str) -> None:
    expected = list(_device_arguments(kernel))
    if mask is not None and len(mask) >= len(expected):
        expected += [(None, None)] * (len(mask) - len(expected))  # what the table does not tell
        expected = [argument for argument, gone in zip(expected, mask, strict=True) if not gone]
    found = list(zip(compiled.sizes, compiled.pointers, strict=True))
    where = f"{source} ({kernel.place})"
    if len(found) < len(expected):
        raise ToolError(
            f"kernel {kernel.name}: its table has {len(expected)} arguments and its code {len(found)}", where
        )
    for index, ((size, pointer), (has, is_pointer)) in enumerate(zip(expected, found, strict=False)):
        if (size is not None and size != has) or (pointer is not None and pointer != is_pointer):
            raise ToolError(
                f"kernel {kernel.name}: argument {index} is {'an address' if pointer else f'{size} bytes'} in its "
                f"table and {'an address' if is_pointer else f'{has} bytes'} in its code",
                where,
            )


def _device_arguments(kernel: Kernel) -> Iterator[tuple[int | None, bool | None]]:
    """Size and whether it is an address, None where the table does not say. Ends where a kind is not known here."""
    for argument in kernel.arguments:
        if argument.kind == POINTER:
            yield 8, True
        elif argument.kind == VALUE:
            yield argument.size, False
        elif argument.kind == ACCESSOR and argument.size & TARGET in BUFFERS:
            yield from _ACCESSOR[: 1 if kernel.esimd else None]
        elif argument.kind == STREAM:
            yield from (*_ACCESSOR * 3, (None, False))
        else:
            return
