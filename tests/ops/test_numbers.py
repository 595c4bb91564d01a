"""Where a kernel must round, and what its neighbours may share: finer questions than test_parity.py asks of all."""

import pytest
import torch
import torch.nn.functional as F

from esimd_ops import reference, samples
from esimd_ops.samples import build
from esimd_ops.table import OPS

HALF_STEP = torch.finfo(torch.float16).eps


def cases(wanted):
    """Every sample of the operators that `wanted` says yes to."""
    chosen = [(operator, sizes) for operator, sizes in samples.every() if wanted(operator)]
    ids = [f"{operator}-{build.label(sizes)}" for operator, sizes in chosen]
    return pytest.mark.parametrize(("operator", "sizes"), chosen, ids=ids)


@cases(lambda operator: "add_rms_norm" in operator)
def test_the_stored_sum_is_exact(ops, operator, sizes):
    arguments = samples.make(operator, sizes).arguments
    expected = reference.of(operator)(**arguments)["residual"]
    getattr(ops, operator)(*arguments.values())
    assert torch.equal(arguments["residual"], expected)


@cases(lambda operator: operator in samples.norm.SIZES)
def test_norms_round_where_the_contract_does(ops, operator, sizes):
    """Two half-precision steps at most in any element, and the very same bits in nearly all.

    A rounding left out or added on the way changes about every second element.
    """
    arguments = samples.make(operator, sizes).arguments
    expected = reference.of(operator)(**arguments)
    getattr(ops, operator)(*arguments.values())
    for name, value in expected.items():
        torch.testing.assert_close(arguments[name], value, rtol=2 * HALF_STEP, atol=1e-6)
        assert (arguments[name] != value).sum() <= max(1, value.numel() // 50), name


@pytest.mark.parametrize("operator", [name for name in OPS if "norm" in name and "rope" not in name])
def test_each_epsilon_is_where_it_belongs(ops, operator):
    arguments = samples.make(operator).arguments
    for epsilon, value in (("eps", 0.5), ("eps1", 0.5), ("eps2", 2.0)):
        if epsilon in arguments:
            arguments[epsilon] = value
    expected = reference.of(operator)(**arguments)
    getattr(ops, operator)(*arguments.values())
    for name, value in expected.items():
        torch.testing.assert_close(arguments[name], value, rtol=4 * HALF_STEP, atol=2e-3)


@pytest.mark.parametrize("operator", ["esimd_moe_silu_mul", "esimd_moe_gelu_tanh_mul"])
def test_activations_of_every_half(ops, operator):
    """To half a step of the exact value and 2e-7 of it: the exponential is the kernel's own."""
    gate = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(torch.float16).reshape(64, 1024)
    output = torch.empty_like(gate)
    getattr(ops, operator)(torch.cat((gate, torch.ones_like(gate)), 1), output, 2048, 1024, 64)
    wide = gate.double()
    exact = F.silu(wide) if "silu" in operator else F.gelu(wide, approximate="tanh")
    step = torch.maximum(exact.abs(), torch.tensor(2.0**-14)).log2().floor().exp2() * HALF_STEP
    within = (output.double() - exact).abs() <= step / 2 + 1e-6 * wide.abs().minimum(exact.abs() + 1)
    assert (within | (output == exact) | (output.isnan() & exact.isnan()))[wide.isfinite() | wide.isnan()].all()


@pytest.mark.parametrize(
    "logits", [[0.0, -0.0, 1.0, -0.0, 0.0], [-1.0, -torch.inf, -3.0, -1.0, -2.0], [6e-8, -6e-8, 0.0, 60.0, -60.0]]
)
def test_equal_logits_are_taken_in_order(ops, logits):
    row = torch.tensor(logits).half().repeat(1, 26)[:, :128].contiguous()
    values, indices = torch.empty(1, 8).half(), torch.empty(1, 8).int()
    ops.esimd_moe_topk(row, values, indices, 1)
    order = torch.sort(row.double(), dim=-1, descending=True, stable=True).indices[:, :8]
    assert torch.equal(indices.long(), order)


@pytest.mark.parametrize("operator", ["esimd_gemv_int4", "esimd_gemm_int4_pgrp"])
def test_every_nibble_and_sign_decodes(ops, operator):
    """One-hot inputs read the weights back: w[n, k] for each k, exactly."""
    weight = torch.arange(256, dtype=torch.uint8).reshape(4, 64)
    scale = torch.tensor([[0.5], [-0.25], [6e-8], [-3.0]]).half()
    expected = reference.int4_weight(weight, scale, torch.float32).half()
    for k in range(128):
        token = torch.zeros(1, 128).half()
        token[0, k] = 1
        output = build.poison(1, 4)
        getattr(ops, operator)(token, weight, scale, output)
        assert torch.equal(output[0], expected[:, k])


@pytest.mark.parametrize(
    ("operator", "expected"), [("esimd_gemv_int4", 7 * HALF_STEP), ("esimd_gemm_int4_pgrp", 8 * HALF_STEP)]
)
def test_only_the_gemm_rounds_each_weight(ops, operator, expected):
    """7 * (1 + step) - 7: the first product is 7 + 8 steps once it is rounded to half."""
    weight = torch.tensor([[0x1F] * 128], dtype=torch.uint8)  # low nibble 15, high nibble 1: 7 and -7
    scale = torch.tensor([[1 + HALF_STEP, 1.0]]).half()
    token = torch.zeros(1, 256).half()
    token[0, 0], token[0, 129] = 1, 1  # 7 of the first group, -7 of the second
    output = build.poison(1, 1)
    getattr(ops, operator)(token, weight, scale, output)
    assert output.item() == expected


@pytest.mark.parametrize(("operator", "source"), [("esimd_rms_norm", "input"), ("esimd_rms_norm_gated", "z")])
def test_an_output_may_be_its_own_input(ops, operator, source):
    arguments = samples.make(operator, (5, 257)).arguments
    expected = reference.of(operator)(**arguments)["output"]
    arguments["output"] = arguments[source]
    getattr(ops, operator)(*arguments.values())
    torch.testing.assert_close(arguments["output"], expected, rtol=2 * HALF_STEP, atol=1e-6)


def test_out_may_be_the_raw_hidden_state(ops):
    arguments = samples.make("esimd_norm_add_norm", (3, 4100)).arguments
    expected = reference.of("esimd_norm_add_norm")(**arguments)["out"]
    arguments["out"] = arguments["h2_raw"]
    ops.esimd_norm_add_norm(*arguments.values())
    torch.testing.assert_close(arguments["out"], expected, rtol=2 * HALF_STEP, atol=1e-6)


@pytest.mark.parametrize(("operator", "source"), [("esimd_rms_norm", "input"), ("esimd_gemv_int4", "input")])
def test_a_nan_is_not_swallowed(ops, operator, source):
    arguments = samples.make(operator).arguments
    arguments[source][0, 5] = torch.nan
    arguments["output"].zero_()
    getattr(ops, operator)(*arguments.values())
    assert arguments["output"].isnan().all()


def test_no_rows_is_no_work(ops):
    empty = torch.empty(0, 64).half()
    ops.esimd_rms_norm(empty, torch.empty_like(empty), torch.ones(64).half(), 1e-6)
    weight, scale = build.int4_matrix(16, 128)
    ops.esimd_gemm_int4_pgrp(torch.empty(0, 128).half(), weight, scale, torch.empty(0, 16).half())
