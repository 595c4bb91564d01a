"""Split barriers: instructions that the front end's translator does not write, written into the module that it leaves.

Device code names an instruction by a function (`__spirv_ControlBarrierArriveINTEL`, as sycl-tla does); at these two the
translator stops for want of an extension. Under another name (RENAMED) it takes them for functions defined elsewhere,
and the calls of such a function become the instruction here. From SPV_INTEL_split_barrier (Khronos' registry): both
take the operands of OpControlBarrier, execution scope, memory scope and semantics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from . import spirv

_OURS = "schema_patch_ControlBarrier"
CODES = {"Arrive": 6142, "Wait": 6143}
RENAMED = tuple(f"-D__spirv_ControlBarrier{name}INTEL={_OURS}{name}" for name in CODES)
CAPABILITY, EXTENSION = 6141, "SPV_INTEL_split_barrier"


def written(module: bytes, where: str) -> bytes:
    """The module with an instruction for each call of such a function; as it is, where there is none."""
    if _OURS.encode() not in module:
        return module
    rows = list(spirv.instructions(module, where))
    named = {words[0]: spirv.text_of(words[2:]) for code, words in rows if spirv.imported(code, words)}
    codes = {id_: code for id_, name in named.items() for word, code in CODES.items() if f"{_OURS}{word}" in name}
    head = module[: 4 * spirv.HEAD]
    return head + b"".join(struct.pack(f"<{len(row)}I", *row) for row in _rewritten(rows, codes))


def _rewritten(rows: list[tuple[int, tuple[int, ...]]], codes: dict[int, int]) -> Iterator[tuple[int, ...]]:
    gone = set(codes) | {words[1] for code, words in rows if code == spirv.FUNCTION_CALL and words[2] in codes}
    inside = capable = False  # a declaration that goes; whether the capability is told
    for code, words in rows:
        if code == spirv.FUNCTION and words[1] in codes:
            inside = True
        elif code == spirv.FUNCTION_CALL and words[2] in codes:
            yield _row(codes[words[2]], words[3:])
        elif not inside and not (code in (spirv.NAME, spirv.DECORATE) and words[0] in gone):
            if code != spirv.CAPABILITY and not capable:  # extensions follow the capabilities
                capable = True
                yield _row(spirv.CAPABILITY, (CAPABILITY,))
                yield _row(spirv.EXTENSION, spirv.words_of(EXTENSION))
            yield _row(code, words)
        elif code == spirv.FUNCTION_END:
            inside = False


def _row(code: int, words: tuple[int, ...]) -> tuple[int, ...]:
    return ((len(words) + 1) << 16 | code, *words)
