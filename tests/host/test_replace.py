"""This kit's operator in the place of one that races: right under every schedule, eager and compiled; what ours refuses
goes to the original."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from esimd_ops import environment, guard, replace, samples
from esimd_ops.races.schedules import NAMED
from esimd_ops.races.watch import HostRuntime
from esimd_ops.samples import build
from esimd_ops.table import OPS
from esimd_ops.trials.subject import OfTable

OP = "esimd_race::esimd_resadd_norm_gemv_fp8_pert"
OPERATOR = OPS["esimd_resadd_norm_gemv_fp8_pert"]
SIZES = (256, 2048)
WRITES = {OPERATOR.name: OPERATOR.writes}


@pytest.fixture
def races(built: Path, runtime: HostRuntime) -> Iterator[HostRuntime]:
    sys.path.insert(0, str(built))
    import esimd_race  # type: ignore[import-not-found]  # noqa: F401

    yield runtime
    guard.disable()
    runtime.schedule("descending,lockstep")


def arguments(sizes: build.Sizes = SIZES) -> dict[str, object]:
    return samples.make(OPERATOR.name, sizes).arguments


def wrong(call: object) -> float:
    """The largest share of wrong elements of an output."""
    given = arguments()
    truth = OfTable(OPERATOR).truth(arguments())
    with torch.no_grad():
        call(*given.values())  # type: ignore[operator]
    return max(truth.shares(given).values())  # type: ignore[arg-type]


def operator() -> torch._ops.OpOverloadPacket:
    return torch.ops.esimd_race.esimd_resadd_norm_gemv_fp8_pert


def test_wrong_without_right_with_wrong_again(races: HostRuntime) -> None:
    races.schedule(NAMED["20 resident"])
    assert wrong(operator()) > 0.5
    guard.enable("esimd_race", writes=WRITES, replace=OP)
    for words in NAMED.values():
        races.schedule(words)
        assert wrong(operator()) == 0
    (told,) = guard.status().replaced
    assert (told.op, told.calls, told.passed) == (OP, len(NAMED), 0)
    assert f"{len(NAMED)} calls, 0 passed on" in str(guard.status())
    guard.disable()
    races.schedule(NAMED["20 resident"])
    assert wrong(operator()) > 0.5


def test_in_inference_mode_and_by_keyword(races: HostRuntime) -> None:
    replace.enable(OP)
    races.schedule(NAMED["20 resident"])
    with torch.inference_mode():
        assert wrong(lambda *given: operator()(**dict(zip(OPERATOR.arguments, given, strict=True)))) == 0
    assert replace.status()[0].calls == 1


def test_compiled(races: HostRuntime) -> None:
    guard.enable("esimd_race", writes=WRITES, replace=OP)
    races.schedule(NAMED["20 resident"])
    torch._dynamo.reset()
    compiled = torch.compile(lambda *given: operator()(*given), backend="aot_eager", fullgraph=True)
    assert wrong(compiled) == 0
    assert guard.status().replaced[0].calls == 1


def test_what_ours_refuses_goes_to_the_original(races: HostRuntime) -> None:
    replace.enable(OP)
    given = arguments()
    given["normed_out"] = torch.empty(2, SIZES[1], dtype=torch.float16)  # a row more than ours takes
    with torch.no_grad():
        operator()(*given.values())
    (told,) = replace.status()
    assert (told.calls, told.passed) == (0, 1)
    assert told.why.startswith("esimd_resadd_norm_gemv_fp8_pert: argument 'normed_out': ")


def test_the_environment_says_so_too(races: HostRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.REPLACE, f"races, {OP}")
    guard.enable("esimd_race", writes=WRITES)
    assert [told.op for told in guard.status().replaced] == [OP]  # the others are not there yet
    guard.disable()
    guard.enable("esimd_race", writes=WRITES, replace="")
    assert guard.status().replaced == ()


@pytest.mark.parametrize("word", ["race", "esimd_ops::esimd_rms_norm", "mylib::op"])
def test_what_is_none_of_ours_is_refused(word: str) -> None:
    with pytest.raises(guard.GuardError, match=f"'{word}': expected 'races'"):
        guard.enable(replace=word)


def test_a_block_for_a_test_leaves_what_was_replaced_before() -> None:
    guard.enable(replace=OP.replace("esimd_race", "custom_esimd_kernels"))
    before = replace.names()
    with guard.enabled(replace="races"):
        assert len(replace.names()) > len(before) == 1
    assert replace.names() == before
    guard.disable()
    assert replace.names() == ()
