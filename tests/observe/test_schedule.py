"""Which calls are watched, and what a budget does; the clock is the test's."""

from __future__ import annotations

import pytest
import torch

from esimd_ops.observe import schedule
from esimd_ops.observe.schedule import Schedule
from esimd_ops.observe.session import Session


def test_the_first_of_each_shape_then_one_in_so_many() -> None:
    chosen = Schedule(first=3, every=10)
    assert [turn for turn in range(1, 40) if chosen.watches(turn)] == [1, 2, 3, 13, 23, 33]
    assert [turn for turn in range(1, 40) if Schedule(first=3, every=0).watches(turn)] == [1, 2, 3]


def test_shapes_are_counted_apart_and_numbers_are_not(operators: object) -> None:
    session = Session(["observed_honest"], Schedule(first=2, every=0))
    session.start()
    op = torch.ops.observed_honest.keyword
    for size in (4, 4, 4, 5, 5, 5):
        op(torch.ones(size), out=torch.zeros(size))
    session.stop()
    seen = session.record().operators["observed_honest::keyword"]
    assert (seen.calls, seen.watched) == (6, 4)


class Clock:
    """A second passes at every look; `rests` are asked for, and end when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.timers = 0.0, []
        monkeypatch.setattr(schedule.time, "perf_counter", self)
        clock = self

        class Timer:
            def __init__(self, delay: float, wake: object) -> None:
                self.delay, self.wake, self.daemon = delay, wake, False
                clock.timers.append(self)

            def start(self) -> None: ...

            def cancel(self) -> None: ...

        monkeypatch.setattr(schedule.threading, "Timer", Timer)

    def __call__(self) -> float:
        return self.now


def test_what_is_over_the_budget_rests_until_the_share_is_kept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    chosen, woken = Schedule(budget=0.1), []
    clock.now = 10.0
    assert not chosen.spend(0.9)
    assert chosen.spend(0.6)  # 1.5 of 10 seconds
    chosen.rest(lambda: woken.append(1))
    chosen.rest(lambda: woken.append(2))
    (timer,) = clock.timers
    assert timer.delay == pytest.approx(5.0)  # 1.5 of 15 seconds
    timer.wake()
    assert woken == [1, 2]


def test_a_resting_operator_is_called_as_if_nobody_observed_but_never_before_its_first_calls(
    operators: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = Schedule(first=3, every=2, budget=1e-9)
    monkeypatch.setattr(chosen, "rest", lambda wake: resting.append(wake))
    resting: list[object] = []
    session = Session(["observed_honest"], chosen)
    op = torch.ops.observed_honest.count
    op(torch.ones(2))
    bare = op._op
    session.start()
    for _ in range(20):
        op(torch.ones(2))
    assert op._op is bare  # its third call was the last to be watched
    (wake,) = resting
    wake()
    assert op._op is not bare
    op(torch.ones(2))
    session.stop()
    assert op._op is bare
    seen = session.record().operators["observed_honest::count"]
    assert (seen.watched, seen.calls, seen.rested) == (3, 4, True)


def test_nothing_is_left_where_nothing_is_observed(operators: object) -> None:
    packet = torch.ops.observed_honest.out_void
    before = (packet._op, packet.default._op, type(packet).__init__, torch._ops._refresh_packet, hash(packet))
    session = Session((), Schedule())
    session.start()
    assert hash(packet) == before[-1]
    assert packet._op is not before[0]
    assert torch.ops.aten.add._op is torch.ops.aten.add.op  # torch's own are not touched
    session.stop()
    assert (packet._op, packet.default._op, type(packet).__init__, torch._ops._refresh_packet, hash(packet)) == before


def test_torchscript_takes_an_observed_operator(operators: object) -> None:
    session = Session(["observed_honest"], Schedule())
    session.start()
    try:

        def program(x: torch.Tensor) -> torch.Tensor:
            return torch.ops.observed_honest.frees_and_takes(x)

        assert torch.equal(torch.jit.script(program)(torch.ones(3)), torch.full((3,), 2.0))
    finally:
        session.stop()


def test_torch_compile_does_not_compile_what_observes(operators: object) -> None:
    op = torch.ops.observed_honest.out_void

    def inner(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()  # so that the call below is one of a frame that is not compiled
        out = torch.zeros_like(x)
        op(x, out)
        return out

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled: list[str] = []
    handle = torch._dynamo.convert_frame.register_bytecode_hook(lambda code, _: compiled.append(code.co_filename))
    session = Session(["observed_honest"], Schedule())
    session.start()
    try:
        with torch._dynamo.config.patch(suppress_errors=False):
            skipped = torch.compiler.disable(inner, recursive=False)
            found = torch.compile(lambda x: skipped(x) + 1, backend="eager")(torch.ones(6))
    finally:
        session.stop()
        handle.remove()
    assert torch.equal(found, torch.full((6,), 3.0))
    assert session.record().operators["observed_honest::out_void"].watched == 1
    codes = torch._dynamo.utils.counters["frames"]
    assert codes["ok"] == codes["total"] > 0, codes
    assert __file__ in compiled
    assert not [name for name in compiled if "esimd_ops" in name]
