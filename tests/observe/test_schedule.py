"""Which calls are watched, and what a budget does; the clock is the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from esimd_ops.observe import schedule
from esimd_ops.observe import session as session_module
from esimd_ops.observe.record import OperatorSeen
from esimd_ops.observe.schedule import Schedule
from esimd_ops.observe.session import Session
from esimd_ops.observe.watch import Signature, Watcher


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
    """Time passes where the test says so; alarms ring when it is theirs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(schedule.time, "perf_counter", self)
        monkeypatch.setattr(schedule.time, "thread_time", self)
        monkeypatch.setattr(session_module, "_clock", self)
        clock = self

        class Alarm:
            def __init__(self, wake: Callable[[], None]) -> None:
                self.wake = wake

            def ring_in(self, seconds: float) -> None:
                clock.alarms.append((clock.now + seconds, self.wake))

            def start(self) -> None: ...

            def cancel(self) -> None: ...

        monkeypatch.setattr(schedule, "Alarm", Alarm)

    def __call__(self) -> float:
        return self.now

    def run(self, seconds: float) -> None:
        self.now += seconds
        due = [alarm for alarm in self.alarms if alarm[0] <= self.now]
        self.alarms = [alarm for alarm in self.alarms if alarm not in due]
        for _, wake in due:
            wake()


def test_who_cannot_be_paid_rests_until_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, woken = Clock(monkeypatch), list[str]()
    chosen = Schedule(budget=0.125)

    def dear() -> None:
        woken.append("dear")

    def cheap() -> None:
        woken.append("cheap")

    clock.run(8)
    chosen.spend(0.75)
    assert chosen.affords(0.25, cheap)
    assert not chosen.affords(0.5, dear)
    chosen.rest(0.5, dear)
    assert not chosen.affords(0.0, cheap), "others are waiting"
    chosen.rest(0.125, cheap)
    clock.run(1)
    assert woken == []
    clock.run(1)
    assert woken == ["dear"]
    assert not chosen.affords(0.125, cheap), "it is promised"
    assert chosen.affords(0.5, dear)
    chosen.redeem(dear)
    chosen.spend(0.5)
    clock.run(1)
    assert woken == ["dear", "cheap"]


def test_a_child_that_was_forked_has_no_promise_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, woken = Clock(monkeypatch), list[str]()
    chosen = Schedule(budget=0.125)

    def who() -> None:
        woken.append("who")

    chosen.rest(0.5, who)
    clock.run(4)
    assert woken == ["who"]
    chosen.begin_anew()
    assert not chosen.affords(0.5, who), "it has not run yet"
    chosen.redeem(who)
    assert not chosen.affords(0.5, who)
    clock.run(4)
    assert chosen.affords(0.5, who)


@pytest.mark.parametrize("budget", [0.01, 0.05])
def test_the_budget_is_kept_at_every_moment_and_nobody_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    """Cheap operators that are called all the time, and a dear one, which is called now and then."""
    clock = Clock(monkeypatch)
    space = f"budgeted_{round(budget * 1000)}"
    library = torch.library.Library(space, "FRAGMENT")
    costs = {"a": 1e-4, "b": 2e-4, "dear": 1e-2, "c": 5e-5}
    for name in costs:
        library.define(f"{name}(Tensor x) -> ()")
        library.impl(name, lambda _: clock.run(1e-6), "CPU")
    ops = [getattr(getattr(torch.ops, space), name).default for name in costs]
    cheap = [op for op in ops if "dear" not in str(op)]

    def call(
        _: object, signature: Signature, seen: OperatorSeen, __: object, original: Any, args: Any, *___: Any
    ) -> None:
        clock.run(costs[signature.op.partition("::")[2]])
        seen.watched += 1
        original(*args)

    monkeypatch.setattr(Watcher, "call", call)
    monkeypatch.setattr(session_module, "BYTE_S", 3e-6)  # of 4 KiB: what is not known is overrated
    session, x = Session([space], Schedule(first=5, every=10, budget=budget)), torch.zeros(1024)
    session.start()
    most = 0.0
    try:
        for step in range(10_000):
            for op in ops if step % 70 == 0 else cheap:
                op(x)
                most = max(most, session.schedule.spent_s - budget * session.schedule.ran_s)
            clock.run(1e-3)
        seen = session.record().operators
    finally:
        session.stop()
    assert most <= 1e-9
    assert all(seen[f"{space}::{name}"].watched >= 5 for name in costs), seen
    assert session.schedule.spent_s > 0.5 * budget * session.schedule.ran_s, "what is allowed is used"


def test_a_resting_operator_is_called_as_if_nobody_observed(operators: object, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    session = Session(["observed_honest"], Schedule(budget=0.5))
    op = torch.ops.observed_honest.count
    op(torch.ones(2))
    bare = op._op
    session.start()
    op(torch.ones(2))
    assert op._op is bare, "nothing has run yet: not even its first call can be paid"
    clock.run(1)
    assert op._op is not bare
    op(torch.ones(2))
    session.stop()
    assert op._op is bare
    seen = session.record().operators["observed_honest::count"]
    assert (seen.watched, seen.calls, seen.rested) == (1, 2, True)
    assert seen.unwatched == {schedule.OVER: 1}


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
