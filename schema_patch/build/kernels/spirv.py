"""A SPIR-V module -> its 64-bit divisions, for which no graphics core has an instruction, and which are in loops.

From the specification (Khronos, SPIR-V 1.6, sections 3.49.13 and 3.49.17). A division by a constant power of two is a
shift, and is none. Also tells whether the module is for the vector compiler (ESIMD).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from schema_patch.build.driver.spirv import instructions, text_of

from .model import Division

STRING, LINE, IMPORT, EXTENDED, ENTRY_POINT, CAPABILITY = 7, 8, 11, 12, 15, 17
DEBUG = "NonSemantic.Shader.DebugInfo"  # the set of instructions in which the translator writes lines
DEBUG_LINE = 103
TYPE_INT, TYPE_VECTOR, CONSTANT, FUNCTION, CALL, LABEL = 21, 23, 43, 54, 57, 248
BRANCH, BRANCH_CONDITIONAL, SWITCH = 249, 250, 251
DIVISIONS = {134, 135, 137, 138, 139}  # UDiv, SDiv, UMod, SRem, SMod
VECTOR_COMPUTE = 5617  # the capability VectorComputeINTEL
WHERE = "a kernel's SPIR-V"


@dataclass(slots=True)
class _Function:
    """What stands in which basic block, and which block follows which."""

    edges: dict[int, set[int]] = field(default_factory=dict)
    divisions: list[tuple[int, str]] = field(default_factory=list)  # block, line
    calls: list[tuple[int, int]] = field(default_factory=list)  # block, function


@dataclass(slots=True)
class _Module:
    strings: dict[int, str] = field(default_factory=dict)
    debug: set[int] = field(default_factory=set)  # imported sets of instructions that tell of lines
    wide: set[int] = field(default_factory=set)  # types of 64-bit integers, and vectors of them
    constants: dict[int, int] = field(default_factory=dict)
    kernels: dict[int, str] = field(default_factory=dict)
    functions: dict[int, _Function] = field(default_factory=dict)

    def place(self, file: int, line: int) -> str:
        return f"{os.path.basename(self.strings.get(file, ''))}:{line}"


def for_vector_compiler(module: bytes) -> bool:
    return any(code == CAPABILITY and words[0] == VECTOR_COMPUTE for code, words in instructions(module, WHERE))


def divisions(module: bytes) -> dict[str, tuple[Division, ...]]:
    """Of each kernel, and of all that it calls. Raises ToolError where the module is cut."""
    read = _read(module)
    found = {}
    for function, kernel in read.kernels.items():
        counts = Counter(_within(read, function, looped=False, above=frozenset()))
        found[kernel] = tuple(Division(line, count, loop) for (line, loop), count in sorted(counts.items()))
    return found


def _read(module: bytes) -> _Module:
    read = _Module()
    function, block, line = _Function(), 0, ""
    for code, words in instructions(module, WHERE):
        if code == STRING:
            read.strings[words[0]] = text_of(words[1:])
        elif code == ENTRY_POINT:
            read.kernels[words[1]] = text_of(words[2:])
        elif code == IMPORT and text_of(words[1:]).startswith(DEBUG):
            read.debug.add(words[0])
        elif (code == TYPE_INT and words[1] == 64) or (code == TYPE_VECTOR and words[1] in read.wide):
            read.wide.add(words[0])
        elif code == CONSTANT:
            read.constants[words[1]] = sum(word << 32 * i for i, word in enumerate(words[2:4]))
        elif code == EXTENDED and words[2] in read.debug and words[3] == DEBUG_LINE:
            line = read.place(words[4], read.constants.get(words[5], 0))
        elif code == LINE:
            line = read.place(words[0], words[1])
        elif code == FUNCTION:
            function, line = _Function(), ""
            read.functions[words[1]] = function
        elif code == LABEL:
            block = words[0]
        elif code in DIVISIONS and words[0] in read.wide and not _shift(read.constants.get(words[3])):
            function.divisions.append((block, line))
        elif code == CALL:
            function.calls.append((block, words[2]))
        elif code in (BRANCH, BRANCH_CONDITIONAL, SWITCH):
            function.edges[block] = set(_targets(code, words))
    return read


def _within(read: _Module, name: int, *, looped: bool, above: frozenset[int]) -> Iterator[tuple[str, bool]]:
    """Line of each division of a function and what it calls, and whether it is in a loop."""
    function = read.functions.get(name)
    if not function or name in above:
        return
    for block, line in function.divisions:
        yield line, looped or _cycles(function.edges, block)
    for block, other in function.calls:
        yield from _within(read, other, looped=looped or _cycles(function.edges, block), above=above | {name})


def _targets(code: int, words: tuple[int, ...]) -> tuple[int, ...]:
    if code == BRANCH:
        return words[:1]
    if code == BRANCH_CONDITIONAL:
        return words[1:3]
    return words[1:]  # literals stand between the labels: no block has such a name, or one edge too many is seen


def _cycles(edges: dict[int, set[int]], block: int) -> bool:
    """Whether a block can be reached from itself."""
    seen: set[int] = set()
    left = list(edges.get(block, ()))
    while left:
        one = left.pop()
        if one == block:
            return True
        if one not in seen:
            seen.add(one)
            left += edges.get(one, ())
    return False


def _shift(divisor: int | None) -> bool:
    return divisor is not None and divisor > 0 and not divisor & (divisor - 1)
