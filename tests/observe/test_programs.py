"""Programs that are right without `observe` and stay so with it; and what is told of operators in odd situations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from esimd_ops.observe import observe
from esimd_ops.observe.api import Seen
from esimd_ops.observe.saved import copied
from schema_patch.model import Report, ToolError, Verdict

SPACE = "observed_in_programs"
ring = [torch.zeros(4) for _ in range(16)]
turns = iter(range(1 << 30))


def add_in_place(x: Tensor, n: float) -> Tensor:
    x.add_(n)
    return x.clone()


def twice(x: Tensor) -> list[Tensor]:
    result = x + 1
    return [result, result]


@pytest.fixture(scope="module")
def ops() -> Iterator[Any]:
    library = torch.library.Library(SPACE, "DEF")
    kernels: dict[str, Callable[..., Any]] = {
        "fresh(Tensor x) -> Tensor": lambda x: x.clone(),
        "conjugate(Tensor x) -> Tensor": lambda x: x.conj(),
        "twice(Tensor x) -> Tensor[]": twice,
        "split(Tensor x) -> Tensor[]": lambda x: list(x.clone().chunk(2)),
        "from_ring(Tensor x) -> Tensor": lambda x: ring[next(turns) % 16].copy_(x),
        "of(Tensor x, int n) -> Tensor": lambda x, n: x + n,
        "of.float(Tensor x, float n) -> Tensor": add_in_place,
        "two(Tensor x, Tensor(a!) b, Tensor(b!) c) -> ()": lambda x, b, c: (b.copy_(x), c.copy_(x), None)[2],
    }
    for schema, kernel in kernels.items():
        library.define(schema)
        for key in ("CPU", "MkldnnCPU"):
            library.impl(schema.partition("(")[0], kernel, key)
    yield getattr(torch.ops, SPACE)
    library._destroy()


def seen(run: Callable[[], object]) -> tuple[Seen, Report]:
    with observe(SPACE) as found:
        run()
    return found, found.report()


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_results_whose_storage_was_emptied(ops: Any) -> None:
    """As FSDP does with what it gathers: the storage lives on, its memory is another's."""

    def run() -> None:
        kept = []
        for _ in range(8):
            kept.append(ops.fresh(torch.zeros(5000)))
            kept[-1].untyped_storage().resize_(0)

    assert codes(seen(run)[1]) == []


def test_what_hides_its_memory_goes_through_and_is_said(ops: Any) -> None:
    found, _ = seen(lambda: ops.fresh(torch.ones(3).to_mkldnn()))
    assert found.record.operators[f"{SPACE}::fresh"].unwatched == {"a tensor of layout _mkldnn": 1}


def test_a_nested_tensor_is_its_values(ops: Any) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    library = torch.library.Library(SPACE, "FRAGMENT")
    library.define("grows(Tensor x) -> ()")
    for key in ("NestedTensorCPU", "AutogradNestedTensor"):
        library.impl("grows", lambda x: (x.values().add_(1), None)[1], key)
    _, report = seen(lambda: ops.grows(nested))
    assert codes(report) == ["SP101"]


def test_a_packet_with_a_nameless_overload_and_another(ops: Any) -> None:
    """Each call is told of the overload that it came to; the table, which has one entry, says what either does."""
    found, report = seen(lambda: (ops.of(torch.ones(3), 2), ops.of(torch.ones(3), 2.5)))
    assert [(each.op, each.code) for each in report.findings] == [(f"{SPACE}::of.float", "SP101")]
    entry = found.table().entries["of"]
    assert (entry.writes, entry.returns, entry.observed) == (("x",), "fresh", 2)


def test_a_function_mode_of_the_program_hears_of_its_own_calls_only(ops: Any) -> None:
    heard = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(function)
            return function(*args, **(kwargs or {}))

    def run() -> None:
        with Mode():
            ops.fresh(x)

    x = torch.ones(3)
    seen(run)
    assert len(heard) == 1


def test_a_conjugate_is_a_view_and_not_the_argument(ops: Any) -> None:
    """A table that called it the argument would make the guard hand back other numbers."""
    found, report = seen(lambda: ops.conjugate(torch.ones(4, dtype=torch.complex64)))
    assert codes(report) == ["SP103"]
    assert found.table().entries["conjugate"].returns == "unknown"


def test_a_list_that_holds_one_tensor_twice(ops: Any) -> None:
    assert codes(seen(lambda: ops.twice(torch.ones(4)))[1]) == ["OB102"]
    assert codes(seen(lambda: ops.split(torch.ones(4)))[1]) == []


def test_a_ring_is_never_said_to_be_larger_than_it_is(ops: Any) -> None:
    """Of more buffers than the calls that are watched without a gap: the guard believes what the table says."""
    found, report = seen(lambda: [ops.from_ring(torch.full((4,), n)) for n in range(430)])
    assert "SP104" in codes(report)
    returns = found.table().entries["from_ring"].returns
    assert returns.startswith("private buffer of ")
    assert 1 < int(returns.split()[-1]) <= 16


def test_the_order_of_arguments_is_that_of_the_schema(ops: Any) -> None:
    """Not that of a set or of addresses, which differ from run to run."""
    one, other = torch.zeros(3), torch.zeros(3)
    for b, c in ((one, other), (other, one)):
        found, _ = seen(partial(ops.two, torch.ones(3), b.zero_(), c.zero_()))
        assert list(found.record.operators[f"{SPACE}::two"].writes) == ["b", "c"]


def test_a_conjugate_is_saved_as_one() -> None:
    x = torch.tensor([1 + 2j]).conj()
    saved = copied({"x": x, "imag": x.imag})
    assert torch.equal(saved["x"], x)
    assert torch.equal(saved["imag"], x.imag)


def test_two_who_observe_the_same(ops: Any) -> None:
    """One that rests, and begins again, puts no other out; nor does one that ends before the other."""
    calls = partial(ops.fresh, torch.ones(2))
    bare = ops.fresh._op
    with ExitStack() as both:
        one = both.enter_context(observe(SPACE, first=0, budget=1e-9))
        with observe(SPACE) as other:
            calls()
            assert one.record.operators[f"{SPACE}::fresh"].rested
            calls()
            one.session.schedule.budget = 1.0
            one.session.schedule._wake()
            calls()
            both.close()
            calls()
    assert [each.record.operators[f"{SPACE}::fresh"].calls for each in (one, other)] == [2, 4]
    assert ops.fresh._op is bare


def test_views_of_one_buffer_of_which_one_is_written(ops: Any) -> None:
    """Torch counts writes to both together, as of a fused projection: of the other nothing is said."""
    q, k, v = torch.arange(12.0).chunk(3)
    _, report = seen(partial(ops.two, q, k, v))
    assert {each.op: each.verdict for each in report.checked}[f"{SPACE}::two"] is Verdict.RIGHT


def test_a_caller_in_a_package_whose_name_begins_with_torch(ops: Any) -> None:
    """torchao's lines are not torch's."""
    path = f"{Path(torch.__file__).parent}ao/calls.py"
    space: dict[str, Any] = {}
    exec(compile("def call(op, x):\n    return op(x)\n", path, "exec"), space)
    found, _ = seen(lambda: space["call"](ops.fresh, torch.ones(2)))
    first = found.record.operators[f"{SPACE}::fresh"].first
    assert first
    assert first.place == f"{path}:2"


def test_a_record_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """At the start an error; later, when a disk is full, a line in the log: the program goes on."""
    from esimd_ops.observe import record
    from esimd_ops.observe.schedule import Schedule
    from esimd_ops.observe.session import Session

    session = Session([SPACE], Schedule())
    with pytest.raises(ToolError, match="expected a file"):
        session.keep_in(tmp_path)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ToolError, match="cannot be written"):
        session.keep_in(tmp_path / "taken" / "seen.json")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    session.keep_in(tmp_path / "seen.json")
    with monkeypatch.context() as patch:
        patch.setattr(record, "write", full)
        session.wrote()
    assert "No space left on device" in caplog.text
    session._path = None


def test_what_another_thread_may_have_changed_is_not_called_right(ops: Any) -> None:
    library = torch.library.Library(SPACE, "FRAGMENT")
    given: list[Tensor] = []
    library.define("keeps(Tensor x) -> ()")
    library.impl("keeps", given.append, "CPU")
    library.define("writes_kept(Tensor x) -> ()")
    library.impl("writes_kept", lambda x: (given[-1].add_(1), None)[1], "CPU")
    kept, done = torch.ones(3), threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        _, report = seen(lambda: (ops.keeps(kept), ops.writes_kept(torch.ones(3))))
    finally:
        done.set()
        other.join()
    rows = {row.op.rpartition("::")[2]: row for row in report.checked}
    assert codes(report) == []
    assert rows["writes_kept"].verdict is Verdict.UNKNOWN
    assert "changed meanwhile, and other threads ran" in rows["writes_kept"].reason
