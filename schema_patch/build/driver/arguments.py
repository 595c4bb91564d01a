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
from .frontend import Device, DeviceImage
from .integration import INFO, returned
from .spirv import EntryPoint, read

ACCESSOR, VALUE, POINTER, STREAM = "accessor", "std_layout", "pointer", "stream"
TARGET = (1 << 11) - 1  # bits of an accessor's number; above them are its dimensions
BUFFERS = frozenset({2014, 2015, 2016})  # global, constant and local memory; the other targets are images
# Device arguments that one accessor becomes: its address, two ranges, an offset. A stream is three of them and a size.
_ACCESSOR: tuple[tuple[int | None, bool | None], ...] = ((8, True), (None, False), (None, False), (None, False))

# Of one device argument: the table's argument, its size and whether it is an address, None where that is not told.
_Expected = tuple[int, int | None, bool | None]
_UNTOLD: _Expected = (0, None, None)

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
            kernel = table[compiled.name]
            for index in _agree(kernel, compiled, masks.get(compiled.name), source):
                kernel = _by_value(kernel, index)
            table[compiled.name] = kernel
    return table


def header(written: str, table: Mapping[str, Kernel]) -> str:
    """The integration header with the arguments of the table, which differ from the front end's as `_by_value` says."""

    def rows(found: re.Match[str]) -> str:
        told = iter(table[found[1]].arguments if found[1] in table else ())
        return _PARAMETER.sub(lambda row: _told(next(told, None)) or row[0], found[0])

    return _SIGNATURE.sub(rows, written)


def _told(argument: Argument | None) -> str:
    return "kernel_param_kind_t::kind_{}, {}, {}".format(*msgspec.structs.astuple(argument)) if argument else ""


def _by_value(kernel: Kernel, index: int) -> Kernel:
    """The kernel, handed one of its addresses as a value: it stands in a structure of its own, as those of a base class
    do that is taken apart for its accessors. Level Zero takes an address for it, OpenCL refuses one."""
    arguments = list(kernel.arguments)
    arguments[index] = msgspec.structs.replace(arguments[index], kind=VALUE)
    return msgspec.structs.replace(kernel, arguments=tuple(arguments))


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


def _masks(image: DeviceImage) -> Mapping[str, tuple[bool, ...]]:
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


def _agree(kernel: Kernel, compiled: EntryPoint, mask: tuple[bool, ...] | None, source: str) -> list[int]:
    """Which of the kernel's arguments are addresses in its table and structures around one in its code."""
    expected: list[_Expected] = list(_device_arguments(kernel))
    if mask is not None and len(mask) >= len(expected):
        expected += [_UNTOLD] * (len(mask) - len(expected))  # what the table does not tell
        expected = [argument for argument, gone in zip(expected, mask, strict=True) if not gone]
    found = list(zip(compiled.sizes, compiled.pointers, strict=True))
    where = f"{source} ({kernel.place})"
    if len(found) < len(expected):
        raise ToolError(
            f"kernel {kernel.name}: its table has {len(expected)} arguments and its code {len(found)}", where
        )
    wrapped = []
    for index, ((number, size, pointer), (has, is_pointer)) in enumerate(zip(expected, found, strict=False)):
        if (size is not None and size != has) or (None not in (pointer, is_pointer) and pointer != is_pointer):
            raise ToolError(
                f"kernel {kernel.name}: argument {index} is {'an address' if pointer else f'{size} bytes'} in its "
                f"table and {'an address' if is_pointer else f'{has} bytes'} in its code",
                where,
            )
        if pointer and is_pointer is None and kernel.arguments[number].kind == POINTER:
            wrapped.append(number)
    return wrapped


def _device_arguments(kernel: Kernel) -> Iterator[_Expected]:
    """Ends where a kind is not known here."""
    for number, argument in enumerate(kernel.arguments):
        if argument.kind == POINTER:
            yield number, 8, True
        elif argument.kind == VALUE:
            yield number, argument.size, False
        elif argument.kind == ACCESSOR and argument.size & TARGET in BUFFERS:
            yield from ((number, *one) for one in _ACCESSOR[: 1 if kernel.esimd else None])
        elif argument.kind == STREAM:
            yield from ((number, *one) for one in (*_ACCESSOR * 3, (None, False)))
        else:
            return
