"""Arguments that an operator has to refuse: each has one thing wrong, in one tensor of an ordinary sample."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from esimd_ops.samples.build import Arguments

# No operator takes the second where it takes the first.
WRONG_DTYPE = {
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.int32: torch.int64,
    torch.uint8: torch.int16,
    torch.float8_e4m3fn: torch.int16,
    torch.float8_e5m2: torch.int16,
}


class Misuse(NamedTuple):
    """`argument` is the tensor that was spoilt; an error may name another that no longer fits to it."""

    kind: str
    argument: str
    arguments: Arguments


def of(arguments: Arguments) -> Iterator[Misuse]:
    """Every way to spoil one tensor of a call that would be fine."""
    for name, value in arguments.items():
        if not isinstance(value, Tensor):
            continue
        yield Misuse("dtype", name, {**arguments, name: value.to(WRONG_DTYPE[value.dtype])})
        yield Misuse("device", name, {**arguments, name: value.to("meta")})
        if value.dim() and value.shape[-1] > 1:
            bits = value.view(torch.uint8) if value.element_size() == 1 else value
            gaps = bits.repeat_interleave(2, -1)[..., ::2].view(value.dtype)
            yield Misuse("gaps", name, {**arguments, name: gaps})
        if value.dim() > 1:
            bits = value.view(torch.uint8) if value.element_size() == 1 else value
            wider = torch.cat((bits, bits[..., :1]), -1).view(value.dtype)
            yield Misuse("one column more", name, {**arguments, name: wider})
