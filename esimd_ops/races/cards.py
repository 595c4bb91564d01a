"""How many work-groups of a launched kernel a card holds at once. Values in, values out.

What a kernel's thread takes (registers) and a group's local memory are facts of its machine code: read from a report of
`esimd_ops kernels` where one is given, else 128 registers, which is what the graphics compiler gives without
-doubleGRF, and the local memory that the host build saw the kernel ask for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from esimd_ops.trials import files
from schema_patch.schemas.cards import Card, groups

REGISTERS = 128  # of a thread, unless a report says otherwise


class Launched(msgspec.Struct, frozen=True):
    """A kernel as the host build saw it launched: `items` a group, `local` bytes of local memory, most `groups`."""

    name: str
    groups: int
    items: int
    local: int


class CompiledKernel(msgspec.Struct, frozen=True):
    """A kernel as compiled for a device: registers of a thread, bytes of local memory of a group, its SIMD width.

    The names are those of ocloc's `.ze_info`.
    """

    name: str
    grf_count: int = REGISTERS
    slm_size: int = 0
    simd_size: int = 1


class _Report(msgspec.Struct, frozen=True):
    kernels: tuple[CompiledKernel, ...]


def resident(card: Card, launched: Launched, kernel: CompiledKernel | None = None, registers: int = REGISTERS) -> int:
    """Groups of a kernel alive at once, at least 1. An ESIMD work-item is a thread; of SIMD kernels several are."""
    width = kernel.simd_size if kernel else 1
    local = max(launched.local, kernel.slm_size if kernel else 0)
    return groups(card, -(-launched.items // width), kernel.grf_count if kernel else registers, local)


def read(path: str) -> dict[str, CompiledKernel]:
    """Kernels by name, from a report in JSON: {"kernels": [{"name", "grf_count", "slm_size", "simd_size"}, ...]}.

    Raises ToolError for a file that is none.
    """
    report = files.read(path, _Report, "report of kernels")
    return {_bare(kernel.name): kernel for kernel in report.kernels}


def of(launched: Launched, kernels: Mapping[str, CompiledKernel]) -> CompiledKernel | None:
    """The compiled kernel of a launch; None where the report does not have it."""
    return kernels.get(_bare(launched.name))


def _bare(name: str) -> str:
    """A kernel's mangled name without the prefix of a type's name and the runtime's inline namespace."""
    return re.sub(r"3_V1", "", name.removeprefix("_ZTS"))
