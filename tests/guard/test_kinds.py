"""Each way in which a guard can be wrong while it says that it guards."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import oplib
import pytest
import torch
from torch import Tensor

from esimd_ops import guard
from esimd_ops.guard import Action, GuardError, debug, eager


def define(library: torch.library.Library, schema: str, function, fake=lambda *_, **__: None, **options) -> None:
    name = schema.partition("(")[0]
    library.define(schema, **options)
    library.impl(name, function, "CPU")
    if fake:
        torch.library.register_fake(f"{library.ns}::{name}", fake, lib=library)


def two(x, a, b):
    a.copy_(x + 1)
    b.copy_(x + 2)


def two_read(op):
    def program(x):
        a, b = torch.zeros_like(x), torch.zeros_like(x)
        op(x, a, b)
        return a * 2, b * 2

    return program


def test_what_is_said_last_counts(scratch) -> None:
    name, library = scratch
    define(library, "op(Tensor x, Tensor a, Tensor b) -> ()", two)
    program = two_read(getattr(torch.ops, name).op)
    (first,) = guard.enable(name, writes={"op": "a"}).decisions
    (second,) = guard.enable(name, writes={"op": ["a", "b"]}).decisions
    assert first.twin.partition("(")[0] != second.twin.partition("(")[0]
    assert oplib.outcome(program, "aot_eager") == "right"
    with pytest.raises(GuardError, match=r"::op is in a graph already, as schema_kit_guard::.*torch\._dynamo\.reset"):
        guard.enable(name, writes={"op": "b"})
    guard.disable()
    torch._dynamo.reset()
    guard.enable(name, writes={"op": ["a", "b"]})
    assert oplib.outcome(program, "aot_eager") == "right"


def test_a_declared_write_is_never_taken_away(scratch) -> None:
    name, library = scratch

    def cache(x, slot, kv, out):
        if int(slot) >= 0:
            kv[int(slot)] = x
        out.copy_(x + 1)

    define(library, "said(Tensor x, Tensor slot, Tensor(a!) kv, Tensor out) -> ()", cache)
    define(library, "seen(Tensor x, Tensor slot, Tensor(a!) kv, Tensor out) -> ()", cache)
    x = torch.ones(4)
    unused = {"seen": (x, torch.tensor(-1), torch.full((3, 4), 7.0), torch.zeros(4))}
    found = guard.enable(name, writes={"said": "out"}, infer=True, samples=unused)
    assert {d.writes for d in found.decisions} == {("kv", "out")}
    for op in (getattr(torch.ops, name).said, getattr(torch.ops, name).seen):

        def program(x, op=op):
            kv, out = torch.zeros(3, 4), torch.zeros_like(x)
            op(x, torch.tensor(1), kv, out)
            return kv.sum(0), out * 2

        assert oplib.outcome(program, "aot_eager") == "right"


def test_a_twin_has_the_tags_of_its_operator(scratch) -> None:
    name, library = scratch
    tags = (torch.Tag.needs_fixed_stride_order, torch.Tag.nondeterministic_seeded)
    define(library, "op(Tensor x, Tensor out) -> ()", lambda x, out: None, tags=tags)
    (decision,) = guard.enable(name, writes={"op": "out"}).decisions
    twin = getattr(getattr(torch.ops, guard.decide.TWINS), decision.twin.partition("(")[0].partition("::")[2]).default
    assert set(twin.tags) == set(getattr(torch.ops, name).op.default.tags) >= set(tags)


@pytest.mark.parametrize(("tag", "schema"), [("out", "op(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"),
                                             ("inplace", "op(Tensor(a!) out, Tensor x) -> Tensor(a!)")])  # fmt: skip
def test_what_torch_understands_by_itself_stays_right(scratch, tag: str, schema: str) -> None:
    """From torch 2.13 on these two forms compile without the guard."""
    name, library = scratch
    tags = (getattr(torch.Tag, tag),) if hasattr(torch.Tag, tag) else ()
    write = (lambda x, *, out: out.copy_(x * 2)) if tag == "out" else (lambda out, x: out.copy_(x * 2))
    define(library, schema, write, lambda *_, out=None, **__: out, tags=tags)
    op = getattr(torch.ops, name).op

    def program(x):
        out = torch.zeros_like(x)
        result = op(out=out, x=x)
        return result + out

    guard.enable(name, writes={"op": "out"}, returns={"op": "out"})
    assert oplib.outcome(program, "aot_eager") == "right"


def kept_in(library: torch.library.Library, count: int, name: str) -> None:
    buffers = [torch.zeros(4) for _ in range(count)]
    calls = [0]

    def kept(x):
        calls[0] += 1
        return torch.mul(x, 3, out=buffers[calls[0] % count])

    define(library, f"{name}(Tensor x) -> Tensor", kept, torch.empty_like)


def test_a_result_that_the_next_call_overwrites_is_refused_while_it_is_needed(scratch) -> None:
    """There a clone would not be what eager gives: both results are then the second."""
    name, library = scratch
    kept_in(library, 1, "one")
    kept_in(library, 2, "ring")
    ops = getattr(torch.ops, name)
    guard.enable(name, returns={"one": "private buffer", "ring": "private buffer of 2"})

    def used_up(op):
        return lambda x: op(x) * 2 + op(x + 1) * 3

    def both_held(op):
        def program(x):
            first, second = op(x), op(x + 1)
            return first + second

        return program

    def view_held(op):
        def program(x):
            first = op(x).view(2, 2)
            return op(x + 1).view(2, 2) - first

        return program

    assert oplib.outcome(used_up(ops.one), "aot_eager") == "right"
    assert oplib.outcome(both_held(ops.ring), "aot_eager") == "right"
    for program in (both_held(ops.one), view_held(ops.one)):
        assert "which no graph can say" in oplib.outcome(program, "aot_eager")


def test_inference_replaces_what_buffers_hold_and_takes_samples_of_every_form(scratch) -> None:
    name, library = scratch
    define(library, "held(Tensor x, Tensor out) -> ()", lambda x, out: (out.copy_(x * 2), None)[1])
    define(library, "held.indices(Tensor x, Tensor ids) -> ()", lambda x, ids: (ids.copy_(x.argsort()), None)[1])
    define(
        library,
        "keyword(Tensor x, *, Tensor out, float eps=1.0) -> Tensor",
        lambda x, *, out, eps=1.0: out.copy_(x + eps),
        None,
    )
    define(library, "attend(Tensor q, Tensor(a!) kv, Tensor? out=None) -> (Tensor, Tensor)",
           lambda q, kv, out=None: (kv.add_(q), out.copy_(q), q.sum())[1:], None)  # fmt: skip
    define(library, "fails(Tensor x) -> ()", lambda x: torch.ones(2) + torch.ones(3), None)
    kept_in(library, 4, "ring")
    x = torch.tensor([3.0, 1.0, 2.0, 0.0])
    samples = {
        "held": (x, x * 2), "held.indices": (x, x.argsort()), "keyword": {"x": x, "out": x + 1.0},
        f"{name}::attend": [x, torch.ones(4), x.clone()], "fails": (x,), "ring": (x,),
    }  # fmt: skip
    with pytest.warns(UserWarning, match=r"infer: .*fails.* cannot be run on its sample: RuntimeError"):
        found = guard.enable(name, infer=True, samples=samples)
    assert {d.schema.op: (d.writes, d.results) for d in found.decisions if d.action is not Action.UNKNOWN} == {
        "held": (("out",), ()), "held.indices": (("ids",), ()), "keyword": (("out",), ("out",)),
        "attend": (("kv", "out"), ("out", "fresh")), "ring": ((), ("private buffer of 4",)),
    }  # fmt: skip


def test_an_operator_that_is_registered_again_stays_guarded(scratch) -> None:
    name, library = scratch
    program = two_read(lambda *given: getattr(torch.ops, name).op(*given))
    define(library, "op(Tensor x, Tensor a, Tensor b) -> ()", lambda x, a, b: None)
    guard.enable(name, writes={"op": ["a", "b"]})
    assert oplib.outcome(program, "aot_eager") == "right"
    library._destroy()
    again = torch.library.Library(name, "FRAGMENT")
    define(again, "op(Tensor x, Tensor a, Tensor b) -> ()", two)
    assert oplib.outcome(program, "aot_eager") == "right"
    assert getattr(torch.ops, name).op.default._schema.is_mutable
    again._destroy()


def test_an_unknown_operator_in_a_graph_is_warned_of(scratch) -> None:
    name, library = scratch
    define(library, "known(Tensor x, Tensor out) -> ()", lambda x, out: None)
    define(library, "strange(Tensor x) -> Tensor", lambda x: x + 1, torch.empty_like)
    guard.enable(name, writes={"known": "out"})
    with pytest.warns(
        UserWarning, match="::strange is traced, and nothing is known of it: its schema declares no write"
    ):
        assert oplib.outcome(getattr(torch.ops, name).strange, "aot_eager") == "right"


def test_enabled_is_for_a_block(scratch) -> None:
    name, library = scratch
    define(library, "op(Tensor x, Tensor a, Tensor b) -> ()", two)
    program = two_read(getattr(torch.ops, name).op)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="torch.compile has compiled before")
        torch.compile(program, backend="aot_eager")(torch.ones(2))
        with guard.enabled(name, writes={"op": ["a", "b"]}) as found:
            assert len(found.guarded) == 1
            assert oplib.outcome(program, "aot_eager") == "right"
    assert guard.status([name]).decisions == ()
    assert oplib.outcome(program, "aot_eager") == "wrong"


def test_what_surrounds_a_block_stays(scratch) -> None:
    name, library = scratch
    define(library, "op(Tensor x, Tensor a, Tensor b) -> ()", two)
    before = guard.enable(name, writes={"op": ["a", "b"]})
    with guard.enabled(name, writes={"op": "a"}) as within:
        assert within.decisions[0].writes == ("a",)
    assert guard.status([name]) == before


def test_debugging_names_the_first_call_that_differs(scratch) -> None:
    """A call that nobody guards is deleted; `after` is the first to be given the wrong thing."""
    name, library = scratch
    define(library, "liar(Tensor x, Tensor a, Tensor b) -> ()", two)
    define(library, "after(Tensor x, Tensor out) -> ()", lambda x, out: (out.copy_(x * 2), None)[1])
    ops = getattr(torch.ops, name)

    def program(x):
        a, b, out = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)
        ops.after(x, out)
        ops.liar(x, a, b)
        ops.after(b, out)
        return out + a

    x = torch.arange(4.0)
    guard.enable(name, writes={"after": "out"})
    found = debug.first_difference(program, x, backend="aot_eager")
    assert str(found) == f"{name}::after, call 2: x, given: largest difference 5"
    guard.enable(name, writes={"liar": ["a", "b"]})
    assert debug.first_difference(program, x, backend="aot_eager") is None
    assert oplib.outcome(program, "aot_eager") == "right"


def test_what_opcheck_sees_and_what_not(scratch) -> None:
    """What docs/guard.md says of it."""
    name, library = scratch
    define(library, "write(Tensor x, Tensor out) -> ()", lambda x, out: (out.copy_(x * 2), None)[1])
    define(
        library,
        "hand(Tensor x, Tensor out) -> Tensor",
        lambda x, out: out.copy_(x * 2),
        lambda x, out: torch.empty_like(out),
    )
    kept_in(library, 1, "kept")
    ops, x = getattr(torch.ops, name), torch.arange(4.0)

    def seen(op, *args):
        found = torch.library.opcheck(op.default, args, test_utils="test_schema", raise_exception=False)
        return str(found["test_schema"]).partition("\n")[0]

    assert seen(ops.write, x, torch.zeros(4)) == "Argument out is not defined as mutable but was mutated"
    assert seen(ops.hand, x, torch.zeros(4)) == "Argument out is not defined to alias output but was aliasing"
    assert seen(ops.write, x, x * 2) == seen(ops.kept, x) == "SUCCESS"
    schema = "(Tensor x, Tensor(a!) out) -> Tensor"
    wrapper = torch.library.custom_op(f"{name}::wrapper", ops.hand, mutates_args=("out",), schema=schema)
    with pytest.raises(RuntimeError, match="alias"):
        wrapper(x, torch.zeros(4))


KEPT: list[torch.library.Library] = []  # torch 2.7 exports nothing any more where a library of before has gone
# 2.11 (2.11.0+cu130) dies in aoti_load_package where an operator is in Python, with a true schema and without the kit too.
DIES = torch.__version__.startswith("2.11.")
LOAD = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import torch, everywhere
warnings.simplefilter("always")
program, package = sys.argv[2] + ".export.pt2", sys.argv[2] + ".compiled.pt2"
x = torch.arange(4.0)
if "guard" in sys.argv:
    from esimd_ops import guard
    guard.enable("everywhere", writes={"op": "output"}, returns={"op": "output"})
if "save" in sys.argv:
    class Module(torch.nn.Module):
        def forward(self, x):
            return everywhere.program(x)
    exported = torch.export.export(Module(), (x,))
    print("compiling", file=sys.stderr, flush=True)
    torch._inductor.aoti_compile_and_package(exported, package_path=package)
    guard.rules._warned.clear()
    print("decomposing", file=sys.stderr, flush=True)
    torch.export.save(exported.run_decompositions({}), program)
else:
    for load in (lambda: torch.export.load(program).module(), lambda: torch._inductor.aoti_load_package(package)):
        try:
            print(load()(x).tolist())
        except Exception:  # in the words of each torch
            print("refused")
"""


@pytest.mark.long
def test_an_export_says_what_its_reader_needs(tmp_path: Path) -> None:
    """Of the program as torch.export saves it, and as AOTInductor compiles it."""

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LOAD, str(Path(__file__).parent), str(tmp_path / "program"), *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))

    saved = run("guard", "save")
    compiling, _, decomposing = saved.stderr.partition("compiling")[2].partition("decomposing")
    for told in (compiling, decomposing):
        assert "everywhere::op is exported as schema_kit_guard::" in told, saved.stderr
    loaded = 1 if DIES else 2
    assert run("guard").stdout == "[1.0, 3.0, 5.0, 7.0]\n" * loaded
    assert run().stdout.startswith("refused\n" * loaded)


def test_without_the_extension_what_is_new_has_a_history_and_the_buffer_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "built", lambda: None)
    mixed = torch.library.Library("eager_mixed", "FRAGMENT")
    KEPT.append(mixed)
    mixed.define("true(Tensor x, Tensor(a!) out) -> Tensor")
    mixed.define("lying(Tensor x, Tensor out) -> (Tensor, Tensor)")

    def attend(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        out.detach().numpy()[...] = x.detach().numpy() * 2
        return out, x.detach().sum().reshape(1)

    mixed.impl("true", lambda x, out: attend(x, out)[1], "CPU")
    mixed.impl("lying", attend, "CPU")
    x = torch.ones(3, requires_grad=True)
    with guard.enabled("eager_mixed", writes={"lying": "out"}, returns={"lying": ("out", "fresh")}):
        result, new = torch.ops.eager_mixed.lying(x, out := torch.zeros(3))
        expected = torch.ops.eager_mixed.true(x, torch.zeros(3))
        with torch.no_grad():
            assert not torch.ops.eager_mixed.lying(x, torch.zeros(3))[1].requires_grad
    assert result.data_ptr() == out.data_ptr()
    assert (out.tolist(), new.tolist()) == ([2, 2, 2], [3])
    assert (result.requires_grad, out.requires_grad) == (False, False)
    assert new.requires_grad
    assert expected.requires_grad
    new.sum().backward()
    assert x.grad is None
