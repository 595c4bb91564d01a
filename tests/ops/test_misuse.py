"""What an operator cannot do right it refuses, naming itself, the argument, what was expected and what was found."""

import re

import pytest
import torch

from esimd_ops import samples

TENSORS = [
    pytest.param(operator, name, id=f"{operator}-{name}")
    for operator in samples.SIZES
    for name, value in samples.make(operator).arguments.items()
    if isinstance(value, torch.Tensor)
]


def refused(ops, operator, arguments, name, expected):
    before = {key: value.clone() for key, value in arguments.items() if isinstance(value, torch.Tensor)}
    with pytest.raises(RuntimeError) as error:
        getattr(ops, operator)(*arguments.values())
    message = str(error.value).splitlines()[0]
    assert message.startswith(f"{operator}: argument '{name}': expected "), message
    assert re.search(expected, message), message
    assert ", found " in message, message
    for key, value in before.items():
        assert torch.equal(value.nan_to_num(), arguments[key].nan_to_num()), f"{key} was written"


@pytest.mark.parametrize(("operator", "name"), TENSORS)
def test_wrong_dtype(ops, operator, name):
    arguments = samples.make(operator).arguments
    wrong = torch.int32 if arguments[name].dtype is torch.uint8 else torch.bfloat16
    arguments[name] = arguments[name].to(wrong)
    refused(ops, operator, arguments, name, r"dtype (Half|Byte), found (BFloat16|Int)")


@pytest.mark.parametrize(("operator", "name"), TENSORS)
def test_not_contiguous(ops, operator, name):
    arguments = samples.make(operator).arguments
    arguments[name] = arguments[name].repeat_interleave(2, -1)[..., ::2]
    if arguments[name].is_contiguous():  # one column: any stride is dense
        pytest.fail("the sample is too small to have gaps")
    refused(ops, operator, arguments, name, "a contiguous tensor, found strides")


@pytest.mark.parametrize(("operator", "name"), TENSORS)
def test_one_column_more(ops, operator, name):
    """A tensor of another width is refused, though it may be its neighbour that no longer fits."""
    arguments = samples.make(operator).arguments
    arguments[name] = torch.cat((arguments[name], arguments[name][..., :1]), -1)
    with pytest.raises(RuntimeError, match=rf"^{operator}: argument '\w+': expected .*, found "):
        getattr(ops, operator)(*arguments.values())


@pytest.mark.parametrize(("operator", "name"), TENSORS)
def test_another_device(ops, operator, name):
    arguments = samples.make(operator).arguments
    arguments[name] = arguments[name].to("meta")
    with pytest.raises(
        RuntimeError, match=rf"^{operator}: argument '\w+': expected a tensor on (cpu|meta), found one on "
    ):
        getattr(ops, operator)(*arguments.values())


SPECIAL = [
    (
        "esimd_gemv_int4",
        {"input": samples.normal(2, 2816)},
        "input",
        "one row of 2816 elements, found shape \\[2, 2816\\]",
    ),
    ("esimd_gemv_int4", {"input": samples.normal(1, 192)}, "input", "a multiple of 128 elements, found 192"),
    ("esimd_gemv_int4", {"weight": torch.zeros(256, 704, dtype=torch.int32)}, "weight", "dtype Byte, found Int"),
    ("esimd_gemm_int4_pgrp", {"input": samples.normal(8, 192)}, "input", "a multiple of 128 columns, found 192"),
    ("esimd_gemm_int4_pgrp", {"input": samples.normal(1024)}, "input", "shape \\[M, K\\], found \\[1024\\]"),
    ("esimd_gemm_int4_pgrp", {"output": samples.poison(7, 64)}, "output", "shape \\[8, 64\\], found \\[7, 64\\]"),
    ("esimd_accum_norm_add_norm", {"h1": samples.normal(2, 2816)}, "h1", "one row of 2816"),
    ("esimd_accum_norm_add_norm", {"top_k": 10}, "top_k", "1 to 9, the rows of routed_output, found 10"),
    ("esimd_accum_norm_add_norm", {"top_k": 0}, "top_k", "1 to 9, the rows of routed_output, found 0"),
    ("esimd_norm_gemv_norm_fp16", {"residual": samples.normal(2, 2816)}, "residual", "one row of 2816"),
    ("esimd_norm_gemv_norm_fp16", {"proj_w": samples.normal(0, 2816)}, "proj_w", "N > 0, found \\[0, 2816\\]"),
    ("esimd_rms_norm", {"weight": samples.normal(32)}, "weight", "one row of 64 elements, found shape \\[32\\]"),
    (
        "esimd_rms_norm",
        {"input": samples.normal(1, 0)},
        "input",
        "rows of at least one element, found shape \\[1, 0\\]",
    ),
    (
        "esimd_rms_norm",
        {"input": torch.tensor(1.0).half()},
        "input",
        "rows of at least one element, found shape \\[\\]",
    ),
]


@pytest.mark.parametrize(("operator", "change", "name", "expected"), SPECIAL)
def test_outside_the_domain(ops, operator, change, name, expected):
    arguments = {**samples.make(operator).arguments, **change}
    refused(ops, operator, arguments, name, expected)


OVERLAPS = [
    ("esimd_rms_norm", "weight", "output"),
    ("esimd_fused_add_rms_norm", "residual", "hidden_states"),
    ("esimd_fused_add_rms_norm", "weight", "hidden_states"),
    ("esimd_norm_add_norm", "h1", "out"),
    ("esimd_norm_add_norm", "h2_raw", "h1"),
    ("esimd_norm_gemv_norm_fp16", "residual", "moe_input"),
]


@pytest.mark.parametrize(("operator", "other", "name"), OVERLAPS)
def test_overlapping_memory(ops, operator, other, name):
    arguments = samples.make(operator).arguments
    arguments[other] = arguments[name].view(arguments[other].shape)
    refused(ops, operator, arguments, name, f"memory of its own, found it overlapping '{other}'")


def test_an_output_shifted_against_its_input(ops):
    memory = samples.normal(3, 64)
    arguments = {"input": memory[:2], "output": memory[1:], "weight": torch.ones(64).half(), "eps": 1e-6}
    refused(ops, "esimd_rms_norm", arguments, "output", "memory of its own, found it overlapping 'input'")


def test_a_misaligned_packed_weight(ops):
    arguments = samples.make("esimd_gemv_int4").arguments
    weight = arguments["weight"]
    memory = torch.zeros(weight.numel() + 1, dtype=torch.uint8)
    arguments["weight"] = memory[1:].view(weight.shape)
    refused(ops, "esimd_gemv_int4", arguments, "weight", "a multiple of 4 bytes, found a view with storage offset 1")
