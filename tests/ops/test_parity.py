"""Each operator computes its contract, writes what it declares and nothing else, every time, eager and compiled.

The rule for numbers is `esimd_ops.table.HALF`: half a step for the last rounding, and fp32 roundings on the way.
"""

import pytest

from esimd_ops import registry, samples
from esimd_ops.parity.trial import ParityTrial
from esimd_ops.samples import build, domain
from esimd_ops.table import OPS, SPECIAL
from esimd_ops.trials.messages import Request
from esimd_ops.trials.subject import OfTable

# Samples that a kernel may refuse instead of computing: outside the domain of the published library.
MAY_BE_REFUSED = {
    "esimd_qkv_split_norm_rope": {"2x3x1x0x128"},
    "esimd_qkv_split_norm_rope_v": {"2x3x1x0x128"},
}

# One of a family and what may be refused; `make severe`, which CI runs, is all of this and more of all 47.
OF_FAMILIES = [
    *MAY_BE_REFUSED,
    "esimd_gemv_int4",
    "esimd_norm_gemv_fp8_pert",
    "esimd_fused_add_rms_norm",
    "esimd_gemm_int4_pgrp",
    "esimd_gdn_conv_fused",
    "esimd_moe_topk",
    "esimd_moe_scatter",
    "q4_0_quantize",
]


@pytest.fixture
def trial(ops):
    def trial(operator):
        schema = registry.schemas("esimd_ops")[operator]
        return ParityTrial(OfTable(OPS[operator]), schema, Request(repeat=8, beyond=True))

    return trial


@pytest.mark.long
@pytest.mark.parametrize("operator", OF_FAMILIES)
def test_everything_of_one_of_a_family(trial, operator):
    done = trial(operator).run(lambda _: None)
    assert done.told == ()
    assert done.verdict == "right"
    assert {refusal.split(":")[0] for refusal in done.refused} <= MAY_BE_REFUSED.get(operator, set())
    assert done.samples + len(done.refused) == len(samples.SIZES[operator][1])


def test_an_ordinary_sample_lies_in_the_domain_of_the_published_library(operator):
    assert domain.published(operator, samples.make(operator).arguments)


def test_in_place_operands_of_many_work_groups_count_as_they_were(trial, operator):
    """More groups than run at once, and each of them on the old values: a late group sees what an early one stored."""
    if not OPS[operator].inplace or "gemv" not in operator:
        return
    sizes = next(sizes for sizes in samples.SIZES[operator][1] if 16411 in sizes)
    run = trial(operator)
    for _ in range(3):
        assert run._numbers(build.label(sizes))
    assert not run.told


def test_what_is_written_after_the_call_has_returned_is_seen(trial):
    run = trial("esimd_rms_norm")
    call, truth, held = run.call, run.operator.truth, []

    def calling(**values):
        held.append(values["output"])
        call(**values)

    def meanwhile(arguments):
        held.pop().zero_()
        return truth(arguments)

    run.call, run.operator.truth = calling, meanwhile
    assert run._numbers("1x64")
    assert [(told.code, told.message) for told in run.told.values()] == [
        ("PA107", "1x64: 'output' was still written after the call had returned")
    ]


def test_what_is_special_is_so_of_an_output_of_an_operator():
    assert set(SPECIAL) <= set(OPS)
    for entry in OPS.values():
        assert set(entry.tolerances) <= set(entry.writes)
