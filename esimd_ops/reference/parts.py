"""Pieces that several references share: decoding of packed weights, the norm, the activations.

Everything is computed in the dtype `compute` and rounded only by `rounded`. Knows number formats, not operators.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu as silu

Tensors = dict[str, Tensor]

INT4_GROUP = 128  # elements along K that share a scale
BLOCK = 128  # rows and columns of a weight block that share a scale
E4M3_TOP = 480.0  # the E4M3 codes 0x7F and 0xFF are the largest number here, not NaN


class CallArguments:
    """The arguments of a call as attributes, and `compute`, the dtype of all arithmetic, in which `wide` has them."""

    def __init__(self, arguments: Mapping[str, Any], compute: torch.dtype) -> None:
        self._arguments, self.compute = arguments, compute

    def __getattr__(self, name: str) -> Any:
        return self._arguments[name]

    @property
    def wide(self) -> Any:
        return _Wide(self)


class _Wide:
    def __init__(self, call: CallArguments) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name).to(self._call.compute)


class Decoder(Enum):
    """How an operator turns fp8 bits into numbers; which one is part of its contract.

    FLUSH  subnormal codes become zero
    EXACT  E4M3 keeps its subnormal codes, E5M2 does not
    RAW    the bits are E5M2 whatever the dtype says, subnormal codes, infinities and NaN kept
    """

    FLUSH = "flush"
    EXACT = "exact"
    RAW = "raw"


@functools.cache
def _codes(e5m2: bool, flush: bool) -> Tensor:
    """The values of the 256 codes, fp32."""
    bits = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    values = bits.view(torch.float8_e5m2 if e5m2 else torch.float8_e4m3fn).float()
    if not e5m2:
        values[0x7F], values[0xFF] = E4M3_TOP, -E4M3_TOP
    exponent = (bits >> 2) & 31 if e5m2 else (bits >> 3) & 15
    return torch.where((exponent == 0) & flush, values * 0, values)


def fp8(weight: Tensor, decoder: Decoder, compute: torch.dtype) -> Tensor:
    """fp8 values, or their bits as uint8 (then E4M3), as numbers of dtype `compute`; same shape."""
    e5m2 = decoder is Decoder.RAW or weight.dtype == torch.float8_e5m2
    flush = decoder is Decoder.FLUSH or (decoder is Decoder.EXACT and e5m2)
    codes = _codes(e5m2, flush).to(weight.device, compute)
    return codes[weight.contiguous().view(torch.uint8).int()]


def nibbles(packed: Tensor) -> Tensor:
    """[N, K/2] uint8, or the same bytes as [N, K/8] int32, to [N, K] uint8 values 0 to 15; low nibble first."""
    packed = packed.contiguous().view(torch.uint8)
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)


def int4_weight(packed: Tensor, scale: Tensor, compute: torch.dtype) -> Tensor:
    """Packed nibbles and [N, K/128] fp16 scales -> [N, K] of `(u - 8) * scale`."""
    return (nibbles(packed).to(compute) - 8) * scale.to(compute).repeat_interleave(INT4_GROUP, -1)


def block_weight(weight: Tensor, scale: Tensor, compute: torch.dtype) -> Tensor:
    """[..., N, K] E4M3 and its fp32 scales [..., ceil(N/128), K/128], one for 128 x 128 weights -> [..., N, K]."""
    rows, columns = weight.shape[-2:]
    wide = scale.to(compute).repeat_interleave(BLOCK, -2)[..., :rows, :].repeat_interleave(BLOCK, -1)[..., :columns]
    return fp8(weight, Decoder.EXACT, compute) * wide


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """`1 / sqrt(mean(x^2) + eps)` over the last dimension, kept."""
    return torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)


def gelu_tanh(x: Tensor) -> Tensor:
    """`0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`."""
    if _absolute.get():  # of 1 + tanh, nothing is left for a small result
        return x.abs()
    return torch.nn.functional.gelu(x, approximate="tanh")


def product(x: Tensor, weight: Tensor, output: Tensor, scale: Tensor | float = 1.0) -> Tensor:
    """`half(scale * x @ weight.T)` in the shape of `output`; x and weight are of the dtype that computes."""
    return rounded(terms((terms(x) @ terms(weight).T) * scale)).reshape(output.shape)


def rounded(x: Tensor) -> Tensor:
    """`half(x)`, the last step of an operator. The truth, which is fp64, is left as it is: a rounded result is right
    within half a step of it."""
    return x if x.dtype is torch.float64 else x.half()


def kept(output: Tensor, compute: torch.dtype) -> Tensor:
    """A copy of an output, for what its operator leaves as it is; fp64 as the truth is."""
    return output.to(torch.float64 if compute is torch.float64 else output.dtype, copy=True)


_absolute: ContextVar[bool] = ContextVar("absolute", default=False)


def terms(x: Tensor) -> Tensor:
    """The terms of a sum. Within `absolute_values`, without their signs."""
    return x.abs() if _absolute.get() else x


@contextmanager
def absolute_values() -> Iterator[None]:
    """While entered, a reference gives the sums of the absolute values of what it adds up, by which the rounding errors
    of a sum are bounded: |fl(sum x) - sum x| <= n eps sum |x| for n terms in any order (Higham, Accuracy and Stability
    of Numerical Algorithms, 4.2), where n is far smaller for a tree, and in practice."""
    token = _absolute.set(True)
    try:
        yield
    finally:
        _absolute.reset(token)
