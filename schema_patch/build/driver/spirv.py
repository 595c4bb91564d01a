"""A SPIR-V module -> its kernels, the types of their arguments, and what it imports. Changes nothing.

From the specification (Khronos, SPIR-V 1.6, section 3): a stream of words, in which the first of each instruction says
how long it is and which.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from schema_patch.model import ToolError

MAGIC = 0x07230203
HEAD = 5  # words before the first instruction
NAME, EXTENSION, ENTRY_POINT, CAPABILITY, DECORATE = 5, 10, 15, 17, 71
FUNCTION, FUNCTION_END, FUNCTION_CALL = 54, 56, 57
TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_ARRAY, TYPE_STRUCT, TYPE_POINTER, TYPE_FUNCTION = (
    20, 21, 22, 23, 28, 30, 32, 33
)  # fmt: skip
CONSTANT = 43
LINKAGE, CPACKED, BY_VALUE, FUNC_PARAM_ATTR = 41, 10, 2, 38
IMPORT = 1
FUNCTION_PARAMETER = 55
BY_VAL = 2  # of the attributes of a function's parameter
POINTER = 8


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """`sizes`: of each argument in bytes, in order; `pointers`: whether it is an address.

    None of a structure that holds one address alone: so the front end hands over the pointers of a base class.
    """

    name: str
    sizes: tuple[int, ...]
    pointers: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class SpirvModule:
    kernels: tuple[EntryPoint, ...]
    imports: tuple[str, ...]


class _Types:
    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.constants: dict[int, int] = {}
        self.packed: set[int] = set()

    def size(self, name: int) -> int:
        """Bytes of a value in memory, with natural alignment."""
        return self._measure(name)[0]

    def _measure(self, name: int) -> tuple[int, int]:
        kind, words = self.rows[name]
        if kind == TYPE_POINTER:
            return POINTER, POINTER
        if kind in (TYPE_INT, TYPE_FLOAT):
            return words[0] // 8, words[0] // 8
        if kind == TYPE_BOOL:
            return 1, 1
        if kind == TYPE_VECTOR:
            one = self.size(words[0])
            whole = one * (4 if words[1] == 3 else words[1])
            return whole, whole
        if kind == TYPE_ARRAY:
            one, align = self._measure(words[0])
            return one * self.constants[words[1]], align
        if kind == TYPE_STRUCT:
            at, widest = 0, 1
            for member in words:
                size, align = self._measure(member)
                align = 1 if name in self.packed else align
                at = -(-at // align) * align + size
                widest = max(widest, align)
            return -(-at // widest) * widest, widest
        return 0, 1  # an opaque type, whose size no argument has

    def address_alone(self, name: int) -> bool:
        kind, members = self.rows[name]
        return kind == TYPE_STRUCT and len(members) == 1 and self.rows[members[0]][0] == TYPE_POINTER

    def pointee(self, name: int) -> int:
        return self.rows[name][1][1]


def read(data: bytes, where: str) -> SpirvModule:
    """Raises ToolError where it is no module, or is cut."""
    types = _Types()
    entries: dict[int, str] = {}
    signatures: dict[int, int] = {}
    parameters: dict[int, list[int]] = {}
    by_value: set[int] = set()
    imports: list[str] = []
    current = 0
    for code, words in instructions(data, where):
        if code == ENTRY_POINT:
            entries[words[1]] = text_of(words[2:])
        elif code == DECORATE:
            if imported(code, words):
                imports.append(text_of(words[2:]))
            elif words[1] == CPACKED:
                types.packed.add(words[0])
            elif words[1] == FUNC_PARAM_ATTR and words[2] == BY_VAL:
                by_value.add(words[0])
        elif TYPE_BOOL <= code <= TYPE_FUNCTION:
            types.rows[words[0]] = (code, tuple(words[1:]))
        elif code == CONSTANT:
            types.constants[words[1]] = words[2]
        elif code == FUNCTION:
            current = words[1]
            signatures[current] = words[3]
        elif code == FUNCTION_PARAMETER:
            parameters.setdefault(current, []).append(words[1])
    kernels = []
    for function, name in entries.items():
        arguments = types.rows[signatures[function]][1][1:]
        values = parameters.get(function, [])
        sizes: list[int] = []
        pointers: list[bool | None] = []
        for kind, value in zip(arguments, values, strict=True):
            held = types.rows[kind][0] == TYPE_POINTER and value in by_value
            sizes.append(types.size(types.pointee(kind) if held else kind))
            alone = held and types.address_alone(types.pointee(kind))
            pointers.append(None if alone else types.rows[kind][0] == TYPE_POINTER and not held)
        kernels.append(EntryPoint(name, tuple(sizes), tuple(pointers)))
    return SpirvModule(tuple(kernels), tuple(sorted(set(imports))))


def instructions(data: bytes, where: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    if len(data) % 4 or len(data) < 4 * HEAD:
        raise ToolError(f"expected a SPIR-V module, found {len(data)} bytes", where)
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if words[0] != MAGIC:
        raise ToolError(f"expected a SPIR-V module, found one that begins with {words[0]:#x}", where)
    at = HEAD
    while at < len(words):
        length, code = words[at] >> 16, words[at] & 0xFFFF
        if not length or at + length > len(words):
            raise ToolError(f"a SPIR-V module is cut at byte {4 * at}", where)
        yield code, words[at + 1 : at + length]
        at += length


def imported(code: int, words: tuple[int, ...]) -> bool:
    """Whether an instruction says that the function it names is defined elsewhere."""
    return code == DECORATE and words[1] == LINKAGE and words[-1] == IMPORT


def words_of(text: str) -> tuple[int, ...]:
    data = text.encode() + b"\0"
    return struct.unpack(f"<{-(-len(data) // 4)}I", data.ljust(-(-len(data) // 4) * 4, b"\0"))


def text_of(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}I", *words).partition(b"\0")[0].decode()
