"""A document -> lines of text, 80 columns, long names folded."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from .model import Access, Document, ExaminedKernel

WIDTH = 80
WIDTHS = (4, 5, 7, 8, 7, 5, 6, 5, 5, 5, 6, 6, 6)  # of the columns that `numbers` names


def numbers(kernel: ExaminedKernel) -> dict[str, int | None]:
    """What a row tells, by its column; None: not known."""
    count = kernel.instructions.get
    return {
        "SIMD": kernel.simd_size, "regs": kernel.grf_count, "spills": kernel.spill_size,
        "private": kernel.private_size, "local": kernel.slm_size, "barr": kernel.barrier_count,
        "instr": sum(kernel.instructions.values()), "send": count("send", 0), "dpas": count("dpas", 0),
        "math": count("math", 0), "int64": count("int64", 0), "moves": count("move", 0),
        "confl": kernel.bank_conflicts,
    }  # fmt: skip


def text(document: Document) -> Iterator[str]:
    target = ""
    for kernel in document.kernels:
        if kernel.target != target:
            target = kernel.target
            yield f"{target}, {document.compiler}"
            yield "".join(f"{name:>{width}}" for name, width in zip(numbers(kernel), WIDTHS, strict=True))
        yield from lines(kernel)


def summary(document: Document) -> str:
    counts = Counter(kernel.target for kernel in document.kernels)
    spilling = sum(kernel.spill_size > 0 for kernel in document.kernels)
    words = ", ".join(f"{count} kernels on {target}" for target, count in counts.items()) or "no kernels"
    failed = f"; {len(document.failed)} could not be looked at" if document.failed else ""
    return f"{words}; {spilling} spill{failed}"


def lines(kernel: ExaminedKernel) -> Iterator[str]:
    """A kernel's name, its numbers, its loops and how much of it cards hold."""
    yield from _folded(f"{kernel.title}{f'  ({kernel.line})' if kernel.line else ''}", "", "  ")
    values = ("?" if value is None else value for value in numbers(kernel).values())
    yield "".join(f"{value:>{width}}" for value, width in zip(values, WIDTHS, strict=True))
    if loads := _loads(kernel.accesses):
        yield from _folded(f"loads: {loads}", "    ", "      ")
    for loop in kernel.loops:
        if loop.bytes_loaded:
            place = f" ({loop.line})" if loop.line else ""
            words = f"loop {loop.start}{place}: {loop.size} instructions, {loop.bytes_loaded} bytes loaded"
            yield from _folded(words, "    ", "      ")
    held = ", ".join(
        f"{name} {one.threads:,}/{'' if one.exact else 'up to '}{one.groups:,}" for name, one in kernel.resident.items()
    )
    if held:
        yield from _folded(f"threads/groups at once: {held}", "    ", "      ")


def _loads(accesses: Iterable[Access]) -> str:
    return ", ".join(
        f"{a.count} x {a.size} bytes {'block' if a.block else 'by lane'}{' local' if a.local else ''}"
        for a in accesses
        if a.load
    )


def _folded(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
