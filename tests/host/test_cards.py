"""How many groups a card holds: the arithmetic against numbers worked out by hand, and the runtime kept to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from esimd_ops.races import cards
from esimd_ops.races.cards import CompiledKernel, Launched
from schema_patch.model import ToolError
from schema_patch.schemas.cards import find

from .test_races import esimd_ops


@pytest.mark.parametrize(
    ("card", "items", "local", "registers", "groups"),
    [
        ("b580", 1, 0, 128, 1280),  # 20 cores x 8 engines x 8 threads
        ("b580", 1, 0, 256, 640),
        ("b50", 32, 2048, 128, 32),  # two groups of 32 threads a core
        ("b580", 32, 2048, 128, 40),
        ("b580", 32, 2048, 256, 20),
        ("b580", 64, 2048, 128, 20),
        ("b70", 64, 2048, 128, 32),
        ("b70", 8, 65536, 128, 64),  # two groups fill the local memory of a core
        ("b570", 1024, 0, 128, 1),  # more threads than a core has: no such launch, and never none
    ],
)
def test_resident_groups(card: str, items: int, local: int, registers: int, groups: int) -> None:
    assert cards.resident(find(card), Launched("k", 9, items, local), registers=registers) == groups


def test_a_report_of_kernels_goes_before_what_the_host_saw(tmp_path: Path) -> None:
    report = tmp_path / "kernels.json"
    report.write_text('{"kernels": [{"name": "_ZTSZ1fRN4sycl3_V15queueEEUlvE_", "grf_count": 256, "slm_size": 40000}]}')
    launched = Launched("Z1fRN4sycl5queueEEUlvE_", 9, 8, 0)
    kernel = cards.of(launched, cards.read(str(report)))
    assert kernel
    assert cards.resident(find("b580"), launched, kernel) == 60  # 3 by local memory, 4 by threads
    assert cards.resident(find("b580"), launched, CompiledKernel("k", simd_size=16)) == 1280  # 8 items are one thread


def test_what_is_no_card_or_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"expected one of b50, .*; found 'a770'"):
        find("a770")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ToolError, match="not a report of kernels"):
        cards.read(str(tmp_path / "x.json"))


def test_a_launch_runs_with_the_residency_of_the_card(built: Path) -> None:
    """2,048 groups of one thread: 1,280 at once on a B580, all of them on a B70."""
    words = ("races", "--namespace", "esimd_race", "--shapes", "2048x2048", "--card", "b580,b70", "--format", "json")
    done = esimd_ops(built, *words)
    assert done.returncode == 1, done.stderr
    facts = json.loads(done.stdout)["facts"]
    held, wrong = facts["resident"][0], facts["wrong"][0]
    assert (held["groups"], held["b580"], held["b70"]) == (2048, 1280, 2048)
    assert wrong["b70"] == 0
    assert wrong["b580"] == pytest.approx(1 - 1280 / 2048, abs=0.01)
    assert wrong["b70 preempted"] > 0
