"""Seeded arguments for each operator, of ordinary and awkward shapes; used by tests, benchmarks and probes alike.

Outputs whose old contents an operator never reads are filled with NaN, integers with -77, so that a value left
unwritten shows. Operands updated in place hold ordinary values. Weights and activations have the magnitudes of trained
models. One module a family, whose functions make what a call needs, and perhaps more; all are made on the CPU.
"""

from collections.abc import Iterator
from zlib import crc32

import torch

from schema_patch.schemas import table

from . import gdn, gemv, moe, norm, norm_gemv, quant, rope
from .build import Choices, Sample, Sizes, label

# operator: how to make its arguments, and the sizes to make them with; the first is the ordinary one
SIZES: Choices = {
    operator: choices
    for family in (norm, gemv, norm_gemv, rope, gdn, moe, quant)
    for operator, choices in family.SIZES.items()
}


def make(operator: str, sizes: Sizes | None = None, turn: int = 0) -> Sample:
    """Seeded arguments of an operator; of its ordinary sizes unless told. Another `turn` gives other values."""
    create, choices = SIZES[operator]
    sizes = choices[0] if sizes is None else sizes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(crc32(f"{operator} {label(sizes)}".encode()) + turn)
        made = create(*sizes)
    return Sample(operator, label(sizes), {name: made[name] for name in table.load().entries[operator].arguments})


def every() -> Iterator[tuple[str, Sizes]]:
    """Every operator with each of its sizes."""
    for operator, (_, choices) in SIZES.items():
        for sizes in choices:
            yield operator, sizes
