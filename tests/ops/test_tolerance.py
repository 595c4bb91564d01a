"""The judge: right in fp32 is right, a rounding to half where the contract has none is not, nor an epsilon misplaced."""

import pytest
import torch

from esimd_ops import reference, samples
from esimd_ops.reference import parts
from esimd_ops.table import OPS
from esimd_ops.trials import judge


def told(operator, wrong, sizes=None):
    """What the judge says of a function in the kernel's place; of all samples where no sizes are given."""
    found = []
    for each in (sizes,) if sizes else OPS[operator].samples:
        arguments = samples.make(operator, each).arguments
        before = {name: arguments[name] for name in OPS[operator].writes}
        found += judge.ByReference(OPS[operator], arguments).told(before, wrong(**arguments))
    return found


def gather_in_half(moe_output, topk_ids, scattered_weights, final_hidden, K, topk, T):
    total = torch.zeros(T, K).half()
    for slot in range(topk):
        rows = topk_ids.reshape(-1, topk)[:T, slot].long()
        total += moe_output[rows] * scattered_weights[rows, None]
    return {"final_hidden": torch.cat((total, final_hidden[T:]))}


def mean_of_the_rounded_sum(hidden_states, residual, weight, eps):
    stored = (hidden_states.float() + residual.float()).half()
    hidden = stored.float() * parts.inverse_rms(stored.float(), eps) * weight.float()
    return {"hidden_states": hidden.half(), "residual": stored}


def accumulated_in_half(routed_output, h1, w1, w2, out, top_k, eps1, eps2):
    total = torch.zeros_like(h1)
    for row in routed_output[:top_k]:
        total += row
    return reference.of("esimd_norm_add_norm")(h2_raw=total, h1=h1, w1=w1, w2=w2, eps1=eps1, eps2=eps2)


def heads_rounded(x, z, norm_weight, gemv_weight, gemv_scale, output, HV, V, eps):
    wide = x.float()
    y = (wide * parts.inverse_rms(wide, eps) * norm_weight.float() * parts.silu(z.float())).half().float()
    weight = parts.int4_weight(gemv_weight, gemv_scale, torch.float32)
    return {"output": (y.reshape(1, -1) @ weight.T).half().reshape(output.shape)}


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("esimd_moe_gather", gather_in_half),
        ("esimd_fused_add_rms_norm", mean_of_the_rounded_sum),
        ("esimd_accum_norm_add_norm", accumulated_in_half),
        ("esimd_norm_gemv_int4_pert", heads_rounded),
    ],
)
def test_a_rounding_to_half_where_the_contract_has_none(operator, wrong):
    assert {found.code for found in told(operator, wrong)} == {"PA101"}


@pytest.mark.parametrize("operator", ["esimd_moe_gather", "esimd_fused_add_rms_norm", "esimd_gdn_conv_fused"])
def test_fp32_is_right(operator):
    assert told(operator, OPS[operator].reference) == []


NORMS = [name for name in OPS if "norm" in name and "rope" not in name]


@pytest.mark.parametrize("operator", NORMS)
@pytest.mark.parametrize("factor", [10, 0.1])
def test_an_epsilon_that_is_another(operator, factor):
    names = [name for name in OPS[operator].arguments if name.startswith("eps")]
    sizes = next(sizes for sizes in OPS[operator].samples if "faint" in sizes)
    for name in names:

        def wrong(name=name, **arguments):
            return OPS[operator].reference(**{**arguments, name: arguments[name] * factor})

        assert told(operator, wrong, sizes), name


@pytest.mark.parametrize("operator", ["esimd_norm_add_norm", "esimd_accum_norm_add_norm"])
def test_epsilons_exchanged(operator):
    def wrong(eps1, eps2, **arguments):
        return OPS[operator].reference(**arguments, eps1=eps2, eps2=eps1)

    assert told(operator, wrong)


def test_the_published_int4_gemm_rounds_more_and_is_told_as_such():
    def published(input, weight, weight_scale, output):
        u, s = parts.nibbles(weight).half(), weight_scale.repeat_interleave(128, -1)
        return {"output": (input.float() @ ((u * s) + (-8 * s)).float().T).half()}

    found = told("esimd_gemm_int4_pgrp", published)
    assert {(each.code, each.severity) for each in found} == {("PA101", "warning")}
    assert "the published kernel makes its weights in half precision" in found[0].message
