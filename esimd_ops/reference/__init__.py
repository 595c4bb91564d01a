"""The plain PyTorch meaning of each operator, from its published contract; no device code, no knowledge of kernels.

Every function has its operator's name, takes by name those of its arguments that matter, and returns the expected value
of each argument that the operator writes; `of` gives it for a whole call. Arguments are only read, so an in-place
operand means its value before the call, and what an operator leaves unwritten keeps its old contents. All arithmetic is
in `compute` (fp32, as the operators do it); `half(...)` marks the roundings that are part of the contract. With
`compute=torch.float64` the same text is the truth that kernels are judged by, with `torch.float16` it is PyTorch's own
half-precision answer.

Shapes: T rows of K elements, N outputs. All tensors are fp16 unless said otherwise. One module a family.
"""

from collections.abc import Callable

from . import gdn, gemm, gemv, moe, norm, norm_gemv, quant, rope
from .parts import Decoder, Expected, asked, fp8, int4_weight, inverse_rms

__all__ = ["FAMILIES", "Decoder", "Expected", "asked", "fp8", "int4_weight", "inverse_rms", "of"]

FAMILIES = (gdn, gemm, gemv, moe, norm, norm_gemv, quant, rope)


def of(operator: str) -> Callable[..., Expected]:
    """The meaning of an operator: all its arguments by name, and perhaps `compute` -> what each written one becomes."""
    return asked(next(vars(family)[operator] for family in FAMILIES if operator in vars(family)))
