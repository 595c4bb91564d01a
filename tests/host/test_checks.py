"""Each planted defect is found by the right check, in its line; correct kernels are found clean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from esimd_ops.races import lines, schedules
from esimd_ops.races.watch import AccessSeen, HostRuntime

Judge = Callable[..., tuple[torch.Tensor, list[AccessSeen]]]
SOURCE = (Path(__file__).parent / "tree" / "defects.sycl").read_text().splitlines()

DEFECTS = {
    "race_in_place": ("race", "input"),
    "race_by_pointer": ("race", "output"),
    "race_same_value": ("race", "output"),
    "race_of_items": ("race-of-items", "output"),
    "slm_race": ("slm-race", "SLM"),
    "missing_barrier": ("slm-race", "SLM"),
    "over_read": ("out-of-bounds", "input"),
    "over_write": ("out-of-bounds", "output"),
    "over_read_by_pointer": ("out-of-bounds", "outside every tensor"),
    "over_read_of_slm": ("slm-out-of-bounds", "SLM"),
    "unwritten_slm": ("slm-unwritten", "SLM"),
    "unwritten_output": ("unwritten", "output"),
    "unwritten_register": ("poison-stored", "output"),
    "divergent_barrier": ("divergent-barrier", "barrier"),
    "misaligned_surface": ("surface", "2D block access"),
}
FINE = [line.partition("KERNEL(")[2].partition(")")[0] for line in SOURCE if line.startswith("KERNEL(fine_")]


def text(party: object) -> str:
    """The source line of a party."""
    place = lines.locate(party.file, party.offset)  # type: ignore[attr-defined]
    assert place.path.endswith("defects.sycl"), place
    return SOURCE[place.line - 1]


def body(name: str) -> list[str]:
    """The lines of a kernel."""
    start = next(i for i, line in enumerate(SOURCE) if line.startswith(f"KERNEL({name})"))
    end = start if SOURCE[start].endswith("}") else SOURCE.index("}", start)
    return SOURCE[start : end + 1]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_by_its_check_in_its_line(judge: Judge, name: str) -> None:
    kind, subject = DEFECTS[name]
    _, seen = judge(name, unwritten=name == "unwritten_output")
    found = [one for one in seen if one.kind == kind]
    assert found, seen
    assert {one.subject for one in found} == {subject}
    for one in found:
        assert text(one.now) in body(name)
        if "race" in kind:
            assert text(one.before) in body(name)
    others = {one.kind for one in seen} - {kind}
    # Poison that was read or came over an edge is also stored.
    assert others <= {"poison-stored"}, seen


@pytest.mark.parametrize(
    "words",
    ["descending,lockstep", "ascending,serial", "random,shuffled,preempt=0.5", "ascending,lockstep,resident=all"],
)
@pytest.mark.parametrize("name", ["race_in_place", "race_by_pointer", "slm_race", "missing_barrier", "race_of_items"])
def test_races_are_found_whatever_the_schedule(judge: Judge, name: str, words: str) -> None:
    _, seen = judge(name, words)
    assert DEFECTS[name][0] in {one.kind for one in seen}


def test_both_lines_of_a_race_are_named(judge: Judge) -> None:
    _, seen = judge("race_in_place", "ascending,serial")
    pairs = {(text(one.before), text(one.now)) for one in seen if one.kind == "race"}
    assert any(("block_load" in before and "const_cast" in now) or "const_cast" in before for before, now in pairs), (
        pairs
    )


def test_a_write_that_changes_nothing_is_told_as_such(judge: Judge) -> None:
    _, seen = judge("race_same_value")
    assert {one.same_value for one in seen} == {True}
    _, seen = judge("race_in_place", "ascending,serial")
    assert False in {one.same_value for one in seen}


@pytest.mark.parametrize("words", schedules.NAMED.values(), ids=schedules.NAMED)
@pytest.mark.parametrize("name", FINE)
def test_what_is_right_is_found_clean(judge: Judge, name: str, words: str) -> None:
    assert len(FINE) == 4
    _, seen = judge(name, words)
    assert seen == []


PIECES = ["promotions", "selects", "replicates", "masks", "reductions", "blocks", "gathers", "lsc", "slm_reversal", "slm_lanes",
          "slm_atomics", "named_barriers", "simt"]  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_the_pieces_themselves_are_found_clean(judge: Judge, name: str) -> None:
    _, seen = judge(name)
    assert seen == []


def test_a_wrong_operand_layout_is_seen_in_the_numbers(judge: Judge) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(8, 16).half(), torch.randn(16, 32).half()
    given = torch.zeros(1024)
    given[128:192] = a.flatten().view(torch.float32)
    given[256:512] = b.flatten().view(torch.float32)
    truth = a.float() @ b[:, :16].float()
    right, seen = judge("dpas_right_layout", given=given)
    torch.testing.assert_close(right[:128].view(8, 16), truth, rtol=1e-4, atol=1e-4)
    assert seen == []
    wrong, _ = judge("dpas_wrong_layout", given=given)
    assert (wrong[:128].view(8, 16) - truth).abs().max() > 1


def test_temporaries_have_bounds_and_contents_too(judge: Judge) -> None:
    assert judge("zeros:blocks")[1] == []
    kinds = {one.kind: one.subject for one in judge("empty:blocks")[1]}
    assert kinds == {"unwritten": "temporary of 4096 bytes", "poison-stored": "output"}
    assert {one.kind: one.subject for one in judge("zeros:over_read")[1]} == {
        "out-of-bounds": "temporary of 4096 bytes",
        "poison-stored": "output",
    }


@pytest.mark.parametrize("words", ["descending,lockstep", "ascending,serial", "random,shuffled,preempt=0.5"])
def test_memory_that_a_kernel_asks_for_is_its_group_s(judge: Judge, words: str) -> None:
    right, seen = judge("asked", words)
    groups = torch.arange(64.0).view(2, 32)
    assert torch.equal(right[:64].view(2, 32), groups.flip(1) + 100 * groups[:, 31:])
    assert seen == []
    _, seen = judge("asked_at_once", words)
    assert {one.subject for one in seen if one.kind in ("slm-race", "slm-unwritten")} == {"group_local_memory"}


def test_the_same_seed_is_the_same_run(judge: Judge) -> None:
    words = "random,shuffled,resident=4,preempt=0.5,seed="
    runs = [judge("race_in_place", words + seed)[0] for seed in ("5", "5", "6", "7", "8")]
    assert torch.equal(runs[0], runs[1])
    assert any(not torch.equal(runs[0], other) for other in runs[2:])


def test_torch_may_take_memory_by_its_address_alone(runtime: HostRuntime) -> None:
    with runtime.watching():
        assert torch.arange(4.0).to_mkldnn().to_dense().tolist() == [0.0, 1.0, 2.0, 3.0]
