"""Wrong kernels that are right but at a border: of values, of sizes, of a number format, or where a parameter changes.

No change of a reference's text makes them (`mutants` makes those): an argument is spoilt before a right kernel sees it,
or a result after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from esimd_ops import reference, samples
from esimd_ops.table import OPS

Tensors = dict[str, Tensor]
Wrong = Callable[..., Tensors]  # all arguments of a call by name -> what it writes

LARGE = 100.0  # activations of trained models have outliers of several hundred
ROWS = 100  # servers decode up to 128 tokens at once
COLUMNS = 1024
DEPTH = 4096  # elements that a sum runs over
TINY = torch.finfo(torch.float16).tiny

ACTIVATIONS = {
    *("input", "hidden_states", "residual", "x", "z", "h1", "h2_raw", "routed_output", "moe_output"),
    *("qkv_state", "qkvz", "router_logits"),
}


def _flushed(x: Tensor) -> Tensor:
    return torch.where(x.abs() < TINY, 0 * x, x)


def _first(x: Tensor) -> Tensor:
    return x.flatten()[:1].expand(x.numel()).reshape(x.shape)


def _cut(start: int, dimension: int) -> Callable[[Tensor], Tensor]:
    def cut(x: Tensor) -> Tensor:
        x = x.clone()
        x.narrow(dimension, start, max(0, x.shape[dimension] - start)).zero_()
        return x

    return lambda x: cut(x) if x.dim() and x.shape[dimension] > start else x


# What no sample shows, and why: the operator and the fault, as a regular expression.
ONE_TOKEN = "one token, or few, in the domain of the published library"
KNOWN = {
    r"esimd_(gemv_(?!fp16 )|(scaled_)?resadd|norm_gemv|norm_add|accum|rms_norm |fused.*norm |gemm_int4).* rows": ONE_TOKEN,
    r"(pert|gemm_fp8_pert)\w* \w*(scale|s\d): one for all": "one number",
    r"(gemv2?|scaled).* norm_weight: without subnormal": "lost in the sum that follows",
    r"_gemv_\w+ (z|scale_with_root): without subnormal": "lost in the sum that follows",
    r"(norm_gemv|gated).* (x|z): cut at DEPTH": "heads of 128 elements",
    r"rms_norm_gated output: columns": "heads of 128 elements",
    r"norm_gemv\w* V: always": "heads of 128 elements",
    r"rope.* norm_w.: without subnormal": "1 is added to it",
    r"rotary_dim: always": "the columns of the cache say it too",
    r"spec (token_indx|num_accepted_tokens): (in|at most)|spec output: rows": "few tokens are drafted at once",
    r"gdn.* qkvz: cut at DEPTH": "not summed",
    r"gdn.* (A_log|dt_bias|ba): without subnormal": "added to more, or an exponent",
    r"gdn.* (ssm_state|output): (cut|columns)": "states and heads of 128 columns, and keys of length 1",
    r"topk.* router_logits: (without subnormal|cut at DEPTH)": "the same probabilities in fp32; at most 512 experts",
    r"topk.* top_values: (cut|columns)": "probabilities, at most 10",
    r"q4_0_quantize out_scale: columns": "one for 128",
    r"gate_out: cut": "at most 1",
}


def reason(operator: str, fault: str) -> str:
    """Why no sample shows it, or ""."""
    return next((KNOWN[known] for known in KNOWN if re.search(known, f"{operator} {fault}")), "")


HALVES: dict[str, Callable[[Tensor], Tensor]] = {
    "without its sign": torch.abs,
    "without subnormal numbers": _flushed,
    "rounded to bf16": lambda x: x.bfloat16().half(),
    "ignored": lambda x: torch.full_like(x, float(x.float().nanmean().round())),
    "one for all": _first,
}
WIDE: dict[str, Callable[[Tensor], Tensor]] = {
    "cut at LARGE": lambda x: x.clamp(-LARGE, LARGE),
    "cut at DEPTH": _cut(DEPTH, -1),
}
FLOATS: dict[str, Callable[[Tensor], Tensor]] = {"rounded to half": lambda x: x.half().float(), "one for all": _first}
INTEGERS: dict[str, Callable[[Tensor], Tensor]] = {
    "in a byte": lambda x: torch.where(x > 0, x & 255, x),
    "in a signed byte": lambda x: x.to(torch.int8).int(),
    "at most 100": lambda x: x.clamp(max=100),
}
RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "without subnormal numbers": _flushed,
    "rounded to bf16": lambda x: x.to(torch.bfloat16).to(x.dtype),
    "cut at LARGE": lambda x: x.clamp(-LARGE, LARGE),
    "rows from ROWS on": _cut(ROWS, 0),
    "columns from COLUMNS on": _cut(COLUMNS, -1),
}


def _towards_zero(x: Tensor) -> Tensor:
    """fp64 -> fp16, what is past the last bit left out."""
    near = x.half()
    too_far = near.double().abs() > x.abs()
    return torch.where(too_far, (near.view(torch.int16) - 1).view(torch.float16), near)


def wrong(operator: str) -> Iterator[tuple[str, Wrong]]:
    """Each wrong kernel of an operator, by the name of its fault."""
    entry = OPS[operator]
    first = samples.make(operator).arguments
    for name, value in first.items():
        if isinstance(value, Tensor):
            if name in entry.overwritten:
                continue
            kinds = {torch.float16: HALVES, torch.float32: FLOATS, torch.int32: INTEGERS}.get(value.dtype, {})
            for kind, spoil in (kinds | (WIDE if name in ACTIVATIONS else {})).items():
                if name != "gemv_weight":  # words of nibbles
                    yield f"{name}: {kind}", _spoilt(operator, {name: spoil})
        elif name in _asked(operator):
            for value in dict.fromkeys(samples.make(operator, sizes).arguments[name] for sizes in entry.samples):
                yield f"{name}: always {value}", _spoilt(operator, {name: lambda _, value=value: value})
            if isinstance(value, float):
                half = float(torch.tensor(value).half())
                yield f"{name}: rounded to half", _spoilt(operator, {name: lambda _, half=half: half})
    for name in entry.writes:
        if first[name].dtype is torch.float16 and not entry.tolerance(name).exact:
            yield f"{name}: rounded towards zero", _after(operator, name, _towards_zero, torch.float64)
            for kind, spoil in RESULTS.items():
                yield f"{name}: {kind}", _after(operator, name, spoil, torch.float32)


def _asked(operator: str) -> set[str]:
    """The arguments that its meaning depends on."""
    found: set[str] = set()

    class Asked(dict[str, object]):
        def __getitem__(self, name: str) -> object:
            found.add(name)
            return super().__getitem__(name)

    reference.meaning(operator)(reference.CallArguments(Asked(samples.make(operator).arguments), torch.float32))
    return found


def _spoilt(operator: str, spoil: dict[str, Callable[[object], object]]) -> Wrong:
    def kernel(**call: object) -> Tensors:
        return reference.of(operator)(**{n: spoil[n](v) if n in spoil else v for n, v in call.items()})

    return kernel


def _after(operator: str, name: str, spoil: Callable[[Tensor], Tensor], compute: torch.dtype) -> Wrong:
    def kernel(**call: object) -> Tensors:
        done = reference.of(operator)(**call, compute=compute)
        return done | {name: spoil(done[name])}

    return kernel
