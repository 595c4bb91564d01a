"""The plain PyTorch meaning of each operator, from its published contract; no device code, no knowledge of kernels.

Every function has its operator's name, takes a `Call`, which has the arguments by name (their shapes and dtypes:
`esimd_ops.ops`), and returns the expected value of each argument that the operator writes; `of` gives it for arguments
by name. Arguments are only read, so an in-place operand means its value before the call, and what an operator leaves
unwritten keeps its old contents. All arithmetic is in `compute` (fp32, as the operators do it); `half(...)` marks the
roundings that are part of the contract. With `compute=torch.float64` the same text is the truth that kernels are judged
by, with `torch.float16` it is PyTorch's own half-precision answer.

T rows of K elements, N outputs. One module a family.
"""

from collections.abc import Callable

import torch

from . import gdn, gemm, gemv, moe, norm, norm_gemv, quant, rope
from .parts import CallArguments, Decoder, Tensors, fp8, int4_weight, inverse_rms

__all__ = ["FAMILIES", "CallArguments", "Decoder", "Tensors", "fp8", "int4_weight", "inverse_rms", "meaning", "of"]

FAMILIES = (gdn, gemm, gemv, moe, norm, norm_gemv, quant, rope)


def meaning(operator: str) -> Callable[[CallArguments], Tensors]:
    found: Callable[[CallArguments], Tensors] = next(vars(f)[operator] for f in FAMILIES if operator in vars(f))
    return found


def of(operator: str) -> Callable[..., Tensors]:
    """The meaning of an operator: its arguments by name, and perhaps `compute` -> what each written one becomes."""
    found = meaning(operator)

    def expected(*, compute: torch.dtype = torch.float32, **arguments: object) -> Tensors:
        return found(CallArguments(arguments, compute))

    return expected
