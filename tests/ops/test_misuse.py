"""What an operator cannot do right it refuses, naming itself, the argument, what was expected and what was found."""

import mmap
import re

import misuse
import pytest
import torch

from esimd_ops import samples
from esimd_ops.samples import build


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def refused(ops, operator, arguments, name, expected):
    before = {key: value.clone() for key, value in arguments.items() if isinstance(value, torch.Tensor)}
    with pytest.raises(RuntimeError) as error:
        getattr(ops, operator)(*arguments.values())
    message = str(error.value).splitlines()[0]
    assert message.startswith(f"{operator}: argument '{name}': expected "), message
    assert re.search(expected, message), message
    assert ", found " in message, message
    for key, value in before.items():
        assert torch.equal(bits(value), bits(arguments[key])), f"{key} was written"


@pytest.mark.parametrize("kind", ["dtype", "gaps", "one column more", "device"])
def test_one_thing_wrong(ops, operator, kind):
    """In each tensor in turn; the error may name a neighbour that no longer fits."""
    for spoilt in misuse.of(samples.make(operator).arguments):
        if spoilt.kind != kind:
            continue
        with pytest.raises(RuntimeError) as error:
            getattr(ops, operator)(*spoilt.arguments.values())
        message = str(error.value).splitlines()[0]
        assert re.match(rf"{operator}: argument '\w+': expected .*, found ", message), (spoilt.argument, message)
        if kind in ("dtype", "gaps"):
            assert f"argument '{spoilt.argument}'" in message


SPECIAL = [
    (
        "esimd_gemv_int4",
        {"input": build.normal(2, 2816)},
        "input",
        "one row of 2816 elements, found shape \\[2, 2816\\]",
    ),
    ("esimd_gemv_int4", {"input": build.normal(1, 192)}, "input", "a multiple of 128 elements, found 192"),
    ("esimd_gemv_int4", {"weight": torch.zeros(256, 704, dtype=torch.int32)}, "weight", "dtype Byte, found Int"),
    ("esimd_gemm_int4_pgrp", {"input": build.normal(8, 192)}, "input", "a multiple of 128 columns, found 192"),
    ("esimd_gemm_int4_pgrp", {"input": build.normal(1024)}, "input", "shape \\[M, K\\], found \\[1024\\]"),
    ("esimd_gemm_int4_pgrp", {"output": build.poison(7, 64)}, "output", "shape \\[8, 64\\], found \\[7, 64\\]"),
    ("esimd_accum_norm_add_norm", {"h1": build.normal(2, 2816)}, "h1", "one row of 2816"),
    ("esimd_accum_norm_add_norm", {"top_k": 10}, "top_k", "1 to 9, the rows of routed_output, found 10"),
    ("esimd_accum_norm_add_norm", {"top_k": 0}, "top_k", "1 to 9, the rows of routed_output, found 0"),
    ("esimd_norm_gemv_norm_fp16", {"residual": build.normal(2, 2816)}, "residual", "one row of 2816"),
    (
        "esimd_norm_gemv_norm_fp16",
        {"proj_w": build.normal(0, 2816), "router_logits": build.poison(1, 0)},
        "proj_w",
        "N > 0, found \\[0, 2816\\]",
    ),
    ("esimd_rms_norm", {"weight": build.normal(32)}, "weight", "one row of 64 elements, found shape \\[32\\]"),
    (
        "esimd_rms_norm",
        {"input": build.normal(1, 0)},
        "input",
        "rows of at least one element, found shape \\[1, 0\\]",
    ),
    (
        "esimd_rms_norm",
        {"input": torch.tensor(1.0).half()},
        "input",
        "rows of at least one element, found shape \\[\\]",
    ),
    ("esimd_gemv_fp8_pern", {"N": 255}, "N", "256, the rows of weight, found 255"),
    ("esimd_gemv_fp8_pern", {"K": 2047}, "K", "2048, the elements of input, found 2047"),
    ("esimd_gemv_fp8_pern_fused3", {"N2": 1}, "N2", "32, the rows of w2, found 1"),
    ("esimd_gemv_fp8_pert", {"input": build.normal(2, 2048)}, "input", "one row of 2048 elements"),
    ("esimd_gemv_fp8_pert", {"weight_scale": torch.ones(1).double()}, "weight_scale", "dtype Float, found Double"),
    (
        "esimd_gemv_fp8_pert_fused2",
        {"w1": torch.zeros(32, 1024).to(torch.float8_e5m2)},
        "w1",
        "E4M3 weights like those of w0, found Float8_e5m2",
    ),
    ("esimd_gemv_fp8_pert_fused2", {"w1": torch.zeros(32, 512).to(torch.float8_e4m3fn)}, "w1", "shape \\[N, 1024\\]"),
    ("esimd_gemv_fp8_blockscale_fused2", {"block_n": 64}, "block_n", "128, found 64"),
    ("esimd_gemm_fp8_blockscale", {"block_k": 64}, "block_k", "128, found 64"),
    ("esimd_gemv_fp16_gelu_mul", {"weight": build.normal(511, 2048)}, "weight", "shape \\[2N, 2048\\], found"),
    ("esimd_norm_gemv_fp8_pert", {"V": 64}, "V", "128, found 64"),
    ("esimd_norm_gemv_int4_pert", {"HV": 0}, "HV", "at least one head, found 0"),
    ("esimd_qkv_split_norm_rope", {"rotary_dim": 63}, "rotary_dim", "an even number up to 256, found 63"),
    ("esimd_qkv_split_norm_rope", {"attn_output_gate": False}, "qkv_state", "without a gate, found"),
    ("topk_v2", {"num_experts": 64}, "num_experts", "128, 256 or 512, found 64"),
    ("topk_v2", {"topk": 4}, "topk", "8 or 10, found 4"),
    ("esimd_moe_topk", {"T": 1000}, "router_logits", "shape \\[1000 or more, 128\\], found"),
    ("esimd_moe_scatter", {"topk": 0}, "topk", "at least one choice a token, found 0"),
    ("esimd_moe_scatter_fused", {"num_experts": 0}, "num_experts", "at least one expert, found 0"),
    ("esimd_moe_gather", {"T": -1}, "T", "no negative count, found -1"),
    ("esimd_moe_silu_mul", {"N_gate_up": 3}, "N_gate_up", "room for gate and up, \\d+, found 3"),
    ("esimd_moe_gemm_fp8", {"num_experts": 1}, "weight", "shape \\[1, "),
    ("esimd_moe_gemm_fp8_blockscale", {"K": 100}, "K", "a multiple of 128, found 100"),
    ("esimd_gdn_conv_fused", {"HV": 3}, "HV", "a multiple of H, \\d+, found 3"),
    ("esimd_gdn_conv_fused_seq", {"K": 64}, "K", "128, found 64"),
    ("esimd_gdn_conv_fused_seq", {"N": 1000}, "qkvz", "shape \\[1000 or more, "),
    ("esimd_gdn_conv_fused_seq_spec", {"num_spec_tokens": 0}, "num_spec_tokens", "at least one token, found 0"),
    ("q4_0_quantize", {"input": build.normal(2, 100)}, "input", "K a multiple of 128, found \\[2, 100\\]"),
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
    ("esimd_gemv_fp8_pert_fused3", "o2", "o1"),
    ("esimd_resadd_norm_gemv_fp8_pert", "hidden_states", "residual"),
    ("esimd_resadd_norm_gemv_fp8_pert", "normed_out", "residual"),
    ("esimd_moe_gather", "moe_output", "final_hidden"),
    ("esimd_gdn_conv_fused_seq", "z_out", "output"),
]


@pytest.mark.parametrize(("operator", "other", "name"), OVERLAPS)
def test_overlapping_memory(ops, operator, other, name):
    arguments = samples.make(operator).arguments
    memory = torch.zeros(max(arguments[other].numel(), arguments[name].numel()), dtype=arguments[name].dtype)
    for tensor in (other, name):
        arguments[tensor] = memory[: arguments[tensor].numel()].view(arguments[tensor].shape)
    refused(ops, operator, arguments, name, f"memory of its own, found it overlapping '{other}'")


def test_an_output_shifted_against_its_input(ops):
    memory = build.normal(3, 64)
    arguments = {"input": memory[:2], "output": memory[1:], "weight": torch.ones(64).half(), "eps": 1e-6}
    refused(ops, "esimd_rms_norm", arguments, "output", "memory of its own, found it overlapping 'input'")


def test_a_misaligned_packed_weight(ops):
    arguments = samples.make("esimd_gemv_int4").arguments
    weight = arguments["weight"]
    memory = torch.zeros(weight.numel() + 1, dtype=torch.uint8)
    arguments["weight"] = memory[1:].view(weight.shape)
    refused(ops, "esimd_gemv_int4", arguments, "weight", "a multiple of 4 bytes, found a view with storage offset 1")


GDN = ("esimd_gdn_conv_fused", "esimd_gdn_conv_fused_seq")
OUT_OF_RANGE = [  # operator, argument, where, value, what is expected
    ("esimd_moe_gather", "topk_ids", 1, -1, "rows from 0 to"),
    ("esimd_moe_gather", "topk_ids", -1, 2**31 - 1, "rows from 0 to"),
    ("esimd_moe_scatter", "sorted_token_ids", 0, -(2**31), "choices from 0 to"),
    ("esimd_moe_scatter_fused", "top_indices", 3, -1, "experts from 0 to"),
    ("esimd_moe_scatter_fused", "top_indices", 2, 2**31 - 1, "experts from 0 to"),
    *((name, "conv_state_indices", 0, 2**31 - 1, "slots up to") for name in GDN),
    *((name, "ssm_state_indices", 1, 1000, "slots up to") for name in GDN),
    ("esimd_gdn_conv_fused_seq_spec", "spec_state_indices", 1, 1000, "slots up to"),
    ("esimd_gdn_conv_fused_seq_spec", "token_indx", 1, -1, "rows from 0 to"),
    ("esimd_gdn_conv_fused_seq_spec", "num_accepted_tokens", 0, 1000, "counts from 0 to"),
    ("esimd_gdn_conv_fused_seq_spec", "num_accepted_tokens", 0, -1, "counts from 0 to"),
    ("esimd_qkv_split_norm_rope", "positions", 0, -1, "positions from 0 to"),
    ("esimd_qkv_split_norm_rope_v", "positions", -1, 2**31 - 1, "positions from 0 to"),
    ("esimd_moe_gemm_fp8", "expert_idx", 0, -1, "rows that do not fall, from 0 to"),
    ("esimd_moe_gemm_fp8_pert", "expert_idx", -1, 2**31 - 1, "rows that do not fall, from 0 to"),
    ("esimd_moe_gemm_fp8_blockscale", "expert_idx", 1, 2**30, "rows that do not fall, from 0 to"),
]


@pytest.mark.parametrize(("operator", "name", "at", "value", "expected"), OUT_OF_RANGE)
def test_an_index_out_of_range(ops, operator, name, at, value, expected):
    arguments = samples.make(operator).arguments
    flat = arguments[name].view(-1)
    at %= len(flat)
    flat[at] = value
    place = [int(n) for n in torch.unravel_index(torch.tensor(at), arguments[name].shape)]
    refused(ops, operator, arguments, name, rf"{expected} \d+, found {value} at \[.*\b{place[-1]}\]")


def test_starts_that_fall(ops):
    arguments = samples.make("esimd_moe_gemm_fp8").arguments
    arguments["expert_idx"][2] = arguments["expert_idx"][1] - 1
    refused(ops, "esimd_moe_gemm_fp8", arguments, "expert_idx", r"do not fall, from 0 to \d+, found \d+ at \[2\]")


@pytest.mark.parametrize(
    ("operator", "name"),
    [*((op, name) for op in GDN for name in ("conv_state_indices", "ssm_state_indices"))]
    + [("esimd_gdn_conv_fused_seq_spec", "spec_state_indices")],
)
def test_one_slot_of_two_rows(ops, operator, name):
    arguments = samples.make(operator).arguments
    flat = arguments[name].view(-1)
    flat[:2] = 0  # the null block is nobody's
    getattr(ops, operator)(*arguments.values())
    flat[:2] = 2
    refused(ops, operator, arguments, name, r"slots that differ, found 2 at \[.*0\] and \[.*1\]")


@pytest.mark.parametrize(("operator", "name", "rows"), [("esimd_moe_gather", "topk_ids", "T")])
def test_what_is_past_the_rows_asked_for_is_not_looked_at(ops, operator, name, rows):
    arguments = samples.make(operator).arguments
    expected = samples.make(operator).arguments
    more = torch.full((3, arguments[name].shape[1]), -1, dtype=torch.int32)
    arguments[name] = torch.cat((arguments[name], more))
    getattr(ops, operator)(*arguments.values())
    getattr(ops, operator)(*expected.values())
    assert torch.equal(arguments["final_hidden"], expected["final_hidden"])


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_memory_that_is_mapped_read_only_may_be_read(ops, tmp_path):
    arguments = samples.make("esimd_gemv_fp16").arguments
    (tmp_path / "weight").write_bytes(arguments["weight"].numpy().tobytes())
    with open(tmp_path / "weight", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    weight = torch.frombuffer(mapped, dtype=torch.float16).view(arguments["weight"].shape)
    outputs = [torch.zeros_like(arguments["output"]) for _ in range(2)]
    ops.esimd_gemv_fp16(arguments["input"], weight, outputs[0])
    ops.esimd_gemv_fp16(arguments["input"], arguments["weight"], outputs[1])
    assert torch.equal(*outputs)
