"""Barriers, fences and atomics order accesses: no alarm for correct kernels, one for each in which an order is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from esimd_ops.races.watch import AccessSeen

Judge = Callable[..., tuple[torch.Tensor, list[AccessSeen]]]
TREE = Path(__file__).parent / "tree"
TEXT = "".join((TREE / name).read_text() for name in ("orders.sycl", "orders_of_items.sycl"))
RIGHT = re.findall(r"^KERNEL\((right_\w+)\)", TEXT, re.MULTILINE)
LOOSE = re.findall(r"^KERNEL\((loose_\w+)\)", TEXT, re.MULTILINE)
SCHEDULES = [
    "descending,lockstep",
    "ascending,serial",
    "random,shuffled,preempt=0.5,seed=3",
    "ascending,serial,resident=2",
]


def test_there_are_enough_of_them() -> None:
    assert len(RIGHT) >= 30
    assert len(LOOSE) >= 10


@pytest.mark.parametrize("name", RIGHT)
def test_a_correct_kernel_raises_no_alarm(judge: Judge, name: str) -> None:
    for words in SCHEDULES:
        output, seen = judge(name, words)
        assert seen == [], words
        assert output.isfinite().all()


@pytest.mark.parametrize("name", LOOSE)
def test_a_missing_order_is_seen(judge: Judge, name: str) -> None:
    for words in SCHEDULES:
        _, seen = judge(name, words)
        expected = "slm-race" if "local_memory" in name and "flag" in name else "race"
        assert {one.kind.removesuffix("-of-items") for one in seen} == {expected}, words


def test_the_sums_are_right_under_every_schedule(judge: Judge) -> None:
    rows = torch.arange(1024.0).view(-1, 16)
    for words in SCHEDULES:
        for name in ("right_last_group", "right_last_group_resets", "right_fence_of_the_language", "right_lock"):
            output, _ = judge(name, words)
            assert torch.equal(output[:16], rows[:8].sum(0)), (name, words)
        output, _ = judge("right_tree", words)
        assert torch.equal(output[16:32], rows[8:16].sum(0)), words
        output, _ = judge("right_last_of_many_items", words)
        assert torch.equal(output[320:384].view(4, 16).sum(0), rows[:16].sum(0)), words
