"""Builtins of SPIR-V extensions that the front end's translator does not write: they are written into its modules here.

Device code names an instruction by a function (`__spirv_ControlBarrierArriveINTEL`, as sycl-tla does). At those of the
extensions below the translator stops; under another name (RENAMED) it takes them for functions defined elsewhere, and
a call of such a function becomes the instruction. Numbers and operands are those of Khronos' registry: an operand for
each argument, in order, but for the last one of a matrix product, which is a number in the instruction itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from schema_patch.model import ToolError

from . import spirv

_OURS = "schema_patch_builtin_"


class Builtin(msgspec.Struct, frozen=True):
    """`literal`: its last argument is no value but part of the instruction."""

    code: int
    capability: int
    extension: str
    literal: bool = False


_BLOCKS, _SPLIT = "SPV_INTEL_2d_block_io", "SPV_INTEL_split_barrier"
BUILTINS = {
    "ControlBarrierArriveINTEL": Builtin(6142, 6141, _SPLIT),
    "ControlBarrierWaitINTEL": Builtin(6143, 6141, _SPLIT),
    "Subgroup2DBlockLoadINTEL": Builtin(6231, 6228, _BLOCKS),
    "Subgroup2DBlockLoadTransformINTEL": Builtin(6232, 6229, _BLOCKS),
    "Subgroup2DBlockLoadTransposeINTEL": Builtin(6233, 6230, _BLOCKS),
    "Subgroup2DBlockPrefetchINTEL": Builtin(6234, 6228, _BLOCKS),
    "Subgroup2DBlockStoreINTEL": Builtin(6235, 6228, _BLOCKS),
    "SubgroupMatrixMultiplyAccumulateINTEL": Builtin(
        6237, 6236, "SPV_INTEL_subgroup_matrix_multiply_accumulate", literal=True
    ),
}
RENAMED = tuple(f"-D__spirv_{name}={_OURS}{name}" for name in BUILTINS)

Words = tuple[int, ...]


def written(module: bytes, where: str) -> bytes:
    """The module with an instruction for each call of such a function; as it is, where there is none."""
    if _OURS.encode() not in module:
        return module
    rows = list(spirv.instructions(module, where))
    named = {words[0]: spirv.text_of(words[2:]) for code, words in rows if spirv.imported(code, words)}
    functions = {
        id_: builtin for id_, name in named.items() for word, builtin in BUILTINS.items() if f"{_OURS}{word}" in name
    }
    head = module[: 4 * spirv.HEAD]
    return head + b"".join(struct.pack(f"<{len(row)}I", *row) for row in _rewritten(rows, functions, where))


def _rewritten(rows: list[tuple[int, Words]], functions: dict[int, Builtin], where: str) -> Iterator[Words]:
    """Less the functions' declarations and what is said of them, and with what their instructions need."""
    gone = set(functions)
    gone |= {words[1] for code, words in rows if _calls(code, words, functions) and not functions[words[2]].literal}
    constants = {words[1]: words[2] for code, words in rows if code == spirv.CONSTANT}
    inside = needs_told = False
    for code, words in rows:
        if code == spirv.FUNCTION and words[1] in functions:
            inside = True
        elif _calls(code, words, functions):
            yield _instruction(functions[words[2]], words, constants, where)
        elif not inside and not (code in (spirv.NAME, spirv.DECORATE) and words[0] in gone):
            if code != spirv.CAPABILITY and not needs_told:  # extensions follow the capabilities
                needs_told = True
                yield from _needs(functions)
            yield _row(code, words)
        elif code == spirv.FUNCTION_END:
            inside = False


def _calls(code: int, words: Words, functions: dict[int, Builtin]) -> bool:
    return code == spirv.FUNCTION_CALL and words[2] in functions


def _instruction(builtin: Builtin, call: Words, constants: dict[int, int], where: str) -> Words:
    type_, result, _, *arguments = call
    if not builtin.literal:
        return _row(builtin.code, tuple(arguments))
    *values, last = arguments
    if last not in constants:
        name = next(name for name, one in BUILTINS.items() if one == builtin)
        raise ToolError(f"expected a constant as the last argument of __spirv_{name}, found a value", where)
    return _row(builtin.code, (type_, result, *values, constants[last]))


def _needs(functions: dict[int, Builtin]) -> Iterator[Words]:
    for capability in sorted({builtin.capability for builtin in functions.values()}):
        yield _row(spirv.CAPABILITY, (capability,))
    for extension in sorted({builtin.extension for builtin in functions.values()}):
        yield _row(spirv.EXTENSION, spirv.words_of(extension))


def _row(code: int, words: Words) -> Words:
    return ((len(words) + 1) << 16 | code, *words)
