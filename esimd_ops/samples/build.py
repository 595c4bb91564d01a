"""What samples are made of: activations, weights in each packing, and outputs filled with what no operator writes."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Arguments = dict[str, Any]
Sizes = tuple[int | str, ...]  # numbers, then perhaps the name of a variant
Choices = dict[str, tuple[Callable[..., Arguments], tuple[Sizes, ...]]]  # how to make arguments, with which sizes

BLOCKS = {"block_n": 128, "block_k": 128}  # weights that share a scale

POISON = -77  # in integer outputs; NaN elsewhere


def sizes(labels: str) -> tuple[Sizes, ...]:
    """What each label says, as in "4x8x256 3x2x128xmore-rows"."""
    return tuple(map(read, labels.split()))


def read(label: str) -> Sizes:
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"(?<=\d)x", label))


def label(sizes: Sizes) -> str:
    """A name for a sample, unique to its sizes."""
    return "x".join(map(str, sizes))


class Sample(NamedTuple):
    """Arguments of one call, by name and in order."""

    operator: str
    label: str
    arguments: Arguments


def normal(*shape: int, spread: float = 1.0, centre: float = 0.0) -> Tensor:
    return (torch.randn(*shape) * spread + centre).half()


SPREADS = {"faint": 1e-3, "faint-other": 1e-3, "tiny": 2e-5}


def activations(*shape: int, variant: str = "", spread: float = 1.0) -> Tensor:
    """Ordinary values. "faint" ones have a mean square about as large as a norm's epsilon, which then counts; "tiny"
    ones are subnormal; of "outliers" some are hundreds of times as large as others, and some subnormal."""
    values = normal(*shape, spread=SPREADS.get(variant, spread))
    if variant == "outliers":
        values[..., ::61] *= 300
        values[..., 1::61] *= 1e-5
    return values


def epsilon(variant: str) -> float:
    """What is added to a mean square: 1e-6, but in "faint-other", so that a constant in its place shows."""
    return 1e-5 if variant == "faint-other" else 1e-6


def poison(*shape: int) -> Tensor:
    return torch.full(shape, torch.nan, dtype=torch.float16)


def poison_int(*shape: int) -> Tensor:
    return torch.full(shape, POISON, dtype=torch.int32)


def norm_weight(K: int, variant: str = "") -> Tensor:
    """About 1; of "outliers" some negative, some large and some subnormal."""
    weight = normal(K, spread=0.1, centre=1.0)
    if variant == "outliers":
        weight[::7] *= -1
        weight[::122] *= 150
        weight[3::61] *= 3e-5
    return weight


def padded_rows(tensor: Tensor, pad: int) -> Tensor:
    """The same values, each row `pad` elements further from the next: a slice of a pool. Rows themselves are dense."""
    rows = tensor.flatten(1)
    memory = torch.full((len(rows), rows.shape[1] + pad), torch.nan, dtype=tensor.dtype)
    memory[:, : rows.shape[1]] = rows
    return memory.as_strided(tensor.shape, (memory.stride(0), *tensor.stride()[1:]))


def int4_matrix(N: int, K: int, variant: str = "") -> tuple[Tensor, Tensor]:
    """Random nibbles [N, K/2], and scales [N, K/128] of both signs; "zeros" makes the scales of every second row 0,
    "outliers" those of every second row subnormal, "faint-other" all."""
    scale = normal(N, K // 128, spread=0.01)
    if variant == "zeros":
        scale[::2] = 0
    if variant == "outliers":
        scale[1::2] *= 1e-3
    elif variant == "faint-other":
        scale *= 1e-4
    return torch.randint(0, 256, (N, K // 2), dtype=torch.uint8), scale


def fp16_matrix(N: int, K: int, variant: str = "") -> Tensor:
    """[N, K]; of "outliers" every second row is subnormal."""
    weight = normal(N, K, spread=0.02)
    if variant == "outliers":
        weight[1::2] *= 1e-3
    return weight


def fp8_matrix(N: int, K: int, variant: str = "e4m3") -> Tensor:
    """[N, K] of the format that the variant names: e4m3, e5m2, or uint8 for E4M3 bits.

    With "-codes", row n holds the code n mod 256 in one place, codes without a number left out, and zeros elsewhere:
    with an input of ones the output reads the code back. Without, normal numbers only, since which subnormal codes
    count is up to the operator.
    """
    name, _, codes = variant.partition("-")
    dtype = torch.float8_e5m2 if name == "e5m2" else torch.float8_e4m3fn
    if codes:
        bits = torch.zeros(N, K, dtype=torch.uint8)
        row = torch.arange(N)
        code = (row % 256).to(torch.uint8)
        # What operators make of infinities and NaN is left open by the contract.
        bits[row, row * 7 % K] = torch.where((code & 0x7C) == 0x7C, 0, code) if name == "e5m2" else code
        weight = bits.view(dtype)
    else:
        values = torch.randn(N, K)
        weight = torch.where(values.abs() < torch.finfo(dtype).smallest_normal, 0, values).to(dtype)
    return weight.view(torch.uint8) if name == "uint8" else weight


def tokens(T: int, K: int, variant: str = "") -> Tensor:
    """[T, K] activations; ones where the weights hold one code each."""
    return torch.ones(T, K).half() if variant.endswith("-codes") else activations(T, K, variant=variant)


def one_scale(variant: str = "", factor: float = 1.0) -> Tensor:
    """An fp32 scale, [1]; without a dimension for E5M2, which operators take as well; 1 where codes are read back."""
    if variant.endswith("-codes"):
        return torch.ones(1)
    factor *= 1e-4 if variant == "faint-other" else 1  # subnormal results
    return factor * (torch.tensor(0.03) if variant == "e5m2" else torch.tensor([0.02]))


def block_scales(N: int, K: int, variant: str = "") -> Tensor:
    """[ceil(N/128), K/128] fp32."""
    blocks = ((N + 127) // 128, K // 128)
    scales = torch.rand(blocks) * 0.03 + 0.005
    return torch.ones(blocks) if variant.endswith("-codes") else scales * 1e-4 if variant == "faint-other" else scales
