"""What enable says and refuses, and that it holds whichever comes first: guard, operator or somebody's fake."""

from __future__ import annotations

import warnings
from importlib import metadata

import oplib
import pytest
import torch

from esimd_ops import environment, guard
from esimd_ops.guard import Action, GuardError, late, never, twins
from schema_patch.schemas import table


def plain(library: torch.library.Library, name: str = "op", fake: bool = True) -> None:
    library.define(f"{name}(Tensor x, Tensor output) -> Tensor")
    library.impl(name, lambda x, output: output.copy_(x * 2), "CPU")
    if fake:
        lying(library, name)


def lying(library: torch.library.Library, name: str = "op") -> None:
    torch.library.register_fake(f"{library.ns}::{name}", lambda x, output: torch.empty_like(output), lib=library)


def program(namespace: str, name: str = "op"):
    """Wrong with any backend where nobody guards the operator: its result is not used, and the call is deleted."""

    def run(x: torch.Tensor) -> torch.Tensor:
        output = torch.zeros_like(x)
        getattr(getattr(torch.ops, namespace), name)(x, output)
        return output + 1

    return run


def test_it_tells_what_it_did_operator_by_operator(guarded: guard.Guard) -> None:
    actions = {d.op.split("::")[1]: d.action for d in guarded.decisions}
    assert actions == {
        "plain": Action.GUARDED, "no_fake": Action.GUARDED, "alias": Action.GUARDED, "void": Action.GUARDED, "two": Action.GUARDED,
        "in_place": Action.GUARDED, "keyword": Action.GUARDED, "lists": Action.GUARDED, "optional": Action.GUARDED,
        "kept": Action.CLONED, "right": Action.NOTHING, "number": Action.UNKNOWN,
    }  # fmt: skip
    assert "liars::two: guarded: writes 'o1' undeclared; only 'o0' declared" in str(guarded)
    assert "liars::number: unknown: not in the operator table" in str(guarded)


@pytest.mark.parametrize("entered", [True, False])
def test_that_spawned_children_are_left_out_is_told(scratch, monkeypatch, entered: bool) -> None:
    """As where the kit is on the path and not installed, or torch loads no entry points."""
    name, library = scratch
    plain(library)
    point = metadata.EntryPoint("schema_kit", "esimd_ops.door:enter", "torch.backends")
    monkeypatch.setattr(environment.metadata, "entry_points", lambda group: [point] if entered else [])
    environment.is_entered.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        guard.enable(name, writes={"op": "output"}, returns={"op": "output"})
    environment.is_entered.cache_clear()
    assert ["spawns will not be guarded" in str(each.message) for each in told].count(True) == (not entered)


def test_twice_is_once(guarded: guard.Guard) -> None:
    again = guard.enable(oplib.NAMESPACE, writes=oplib.WRITES, returns=oplib.RETURNS)
    assert again == guarded
    assert oplib.outcome(oplib.PROGRAMS["plain-buffer_read"], "aot_eager") == "right"


@pytest.mark.parametrize("built", [True, False], ids=["in C++", "in Python"])
def test_a_twin_is_in_cpp_where_the_extension_is_built_and_else_in_python(scratch, monkeypatch, built) -> None:
    name, library = scratch
    plain(library)
    library.define("kept(Tensor x) -> Tensor")
    buffer = torch.zeros(4)
    library.impl("kept", lambda x: buffer.copy_(x * 2), "CPU")
    torch.library.register_fake(f"{name}::kept", torch.empty_like, lib=library)
    # There is none under `make test-torch`; where one is missing elsewhere, tests/ops fail.
    built = built and twins.built() is not None
    if not built:
        monkeypatch.setattr(twins, "built", lambda: None)
    found = guard.enable(
        name, writes={"op": ["output"], "kept": []}, returns={"op": "output", "kept": "private buffer"}
    )
    for decision in found.decisions:
        twin = decision.twin.partition("(")[0]
        assert ("trampoline.cpp" in torch._C._dispatch_dump(twin)) == built
    assert oplib.outcome(program(name), "aot_eager") == "right"

    kept = getattr(torch.ops, name).kept

    def deep(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x + kept(torch.tanh(x))
        return x

    assert oplib.outcome(deep, "inductor") == "right"


def test_disable_takes_it_back(scratch) -> None:
    name, library = scratch
    plain(library)
    assert oplib.outcome(program(name), "aot_eager") == "wrong"
    guard.enable(name, writes={"op": ["output"]}, returns={"op": "output"})
    assert oplib.outcome(program(name), "aot_eager") == "right"
    assert guard.disable() == (f"{name}::op",)
    assert oplib.outcome(program(name), "aot_eager") == "wrong"
    guard.enable(name, writes={"op": ["output"]}, returns={"op": "output"})
    assert oplib.outcome(program(name), "aot_eager") == "right"


def test_a_block_says_something_else_of_a_traced_operator_and_leaves_all_as_it_was(scratch) -> None:
    name, library = scratch
    plain(library)
    guard.enable(name, writes={"op": "output"}, returns={"op": "output"})
    before = guard.status()
    assert oplib.outcome(program(name), "aot_eager") == "right"
    with guard.enabled(name, writes={"op": ["x", "output"]}, returns={"op": "output"}) as within:
        assert [d.writes for d in within.decisions] == [("x", "output")]
        assert oplib.outcome(program(name), "aot_eager") == "right"
    assert guard.status() == before
    assert oplib.outcome(program(name), "aot_eager") == "right"


@pytest.mark.parametrize(
    "order", ["guard, operator, fake", "operator, guard, fake", "operator, fake, guard", "operator, guard"]
)
def test_whichever_comes_first(scratch, order: str) -> None:
    name, library = scratch
    for step in order.split(", "):
        if step == "guard":
            guard.enable(name, writes={"op": ["output"]}, returns={"op": "output"})
        elif step == "operator":
            plain(library, fake=False)
        else:
            getattr(torch.ops, name).op  # noqa: B018  Python binds it, as every framework does before it registers a fake
            lying(library)
    assert oplib.outcome(program(name), "aot_eager") == "right"
    assert guard.status([name]).decisions[0].action is Action.GUARDED


def test_pending_is_said(scratch) -> None:
    name, library = scratch
    found = guard.enable(name, writes={"op": ["output"]}, returns={"op": "output"})
    assert found.pending == (name,)
    assert "they are guarded when they are loaded" in str(found)
    plain(library)
    assert name not in never._pending[0](), "registered, though nobody reached it yet"
    assert oplib.outcome(program(name), "aot_eager") == "right"
    assert guard.status([name]).pending == ()


def test_a_later_operator_of_the_same_library(scratch) -> None:
    name, library = scratch
    plain(library, "first")
    guard.enable(name, writes={"first": ["output"]}, returns={"first": "output"})
    assert oplib.outcome(program(name, "first"), "aot_eager") == "right"
    plain(library, "second")
    guard.enable(name, writes={"second": ["output"]}, returns={"second": "output"})
    assert oplib.outcome(program(name, "second"), "aot_eager") == "right"
    assert oplib.outcome(program(name, "first"), "aot_eager") == "right"


def test_a_result_of_which_nothing_is_said_is_refused(scratch) -> None:
    """A clone of it would be wrong where result or buffer is written afterwards."""
    name, library = scratch
    plain(library)
    found = guard.enable(name, writes={"op": ["output"]})
    assert found.decisions[0].action is Action.REFUSED
    assert "tell returns={'op': NAME}" in oplib.outcome(program(name), "aot_eager")

    def written_later(x: torch.Tensor) -> torch.Tensor:
        output = torch.zeros_like(x)
        getattr(torch.ops, name).op(x, output).mul_(10)
        return output * 2

    guard.disable()
    guard.enable(name, writes={"op": "output"}, returns={"op": "output"})
    assert oplib.outcome(written_later, "aot_eager") == "right"


def test_inference(scratch) -> None:
    name, library = scratch
    plain(library)
    library.define("kept(Tensor x) -> Tensor")
    buffer = torch.zeros(4)
    library.impl("kept", lambda x: buffer.copy_(x), "CPU")
    library.define("fresh(Tensor x) -> Tensor")
    library.impl("fresh", lambda x: x * 2, "CPU")
    library.define("view(Tensor x) -> Tensor")
    library.impl("view", lambda x: x[1:], "CPU")
    x, poison = torch.arange(4.0), torch.full((4,), torch.nan)
    found = guard.enable(name, infer=True, samples={"op": (x, poison), "kept": (x,), "fresh": (x,)})
    actions = {d.op.split("::")[1]: d.action for d in found.decisions}
    assert actions == {"op": Action.GUARDED, "kept": Action.CLONED, "fresh": Action.NOTHING, "view": Action.UNKNOWN}
    assert oplib.outcome(program(name), "aot_eager") == "right"
    assert poison.isnan().all()  # the caller's sample is left alone
    with pytest.raises(GuardError, match="returns a view of its argument 'x'"):
        guard.enable(name, infer=True, samples={"view": (x,)})
    with pytest.raises(GuardError, match="no operator gone is registered"):
        guard.enable(name, infer=True, samples={"gone": (x,)})


def test_what_it_refuses(scratch) -> None:
    name, library = scratch
    plain(library)
    library.define("mixed(Tensor x, Tensor(a!) o) -> (Tensor(a!), Tensor)")
    library.impl("mixed", lambda x, o: (o.copy_(x), x + 1), "CPU")
    torch.library.register_fake(f"{name}::mixed", lambda x, o: (o, torch.empty_like(x)), lib=library)
    library.define("count(Tensor x, int n) -> ()")
    library.impl("count", lambda x, n: None, "CPU")
    library.define("view(Tensor x, Tensor o) -> Tensor")
    library.impl("view", lambda x, o: o.copy_(x)[1:], "CPU")
    said = {"op": ["out"], "mixed": ["o"], "count": ["n"], "view": ["o"]}
    found = guard.enable(name, writes=said, returns={"mixed": ("o", "fresh", "fresh")})
    reasons = {d.op.split("::")[1]: (d.action, d.reason) for d in found.decisions}
    assert reasons["op"] == (
        Action.REFUSED,
        f"it has no argument 'out'; its schema is {name}::op(Tensor x, Tensor output) -> Tensor",
    )
    assert reasons["mixed"] == (Action.REFUSED, "it returns 2 values, and 3 are described: o, fresh, fresh")
    assert reasons["view"][0] is Action.REFUSED
    assert reasons["count"] == (Action.REFUSED, "argument 'n' is no tensor: its type is int")
    outcome = oplib.outcome(lambda x: getattr(torch.ops, name).mixed(x, torch.zeros(4))[1], "aot_eager")
    assert outcome.startswith("refused") or f"{name}::mixed: the guard cannot make it right" in outcome


def test_clear_errors(scratch) -> None:
    name, library = scratch
    library.define("unknown(Tensor x) -> Tensor")
    with pytest.raises(GuardError, match=f"nothing is known of any operator of {name}: .*writes=, or infer=True"):
        guard.enable(name)
    with pytest.raises(GuardError, match=f"no operator {name}::gone is registered"):
        guard.enable(name, writes={"gone": ["x"]})
    with pytest.raises(GuardError, match="writes= needs the namespace"):
        guard.enable(writes={"op": ["x"]})


def test_it_warns_after_a_compilation(scratch) -> None:
    name, library = scratch
    plain(library)
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    with pytest.warns(UserWarning, match="torch.compile has compiled before the guard was enabled"):
        guard.enable(name, writes={"op": ["output"]})


def test_twins_do_not_collide_and_name_their_operator() -> None:
    from esimd_ops.guard.decide import Decision, operator_of, twin_name
    from schema_patch.schemas import grammar

    ops = ("a_b::c", "a::b_c", "a::b.c", "a::b_dot_c", "a__b::c")
    decisions = [Decision(op, Action.GUARDED, "", grammar.parse(f"{op}(Tensor x) -> ()"), ("x",)) for op in ops]
    names = [twin_name(decision) for decision in decisions]
    assert len(set(names)) == 5
    assert [operator_of(name) for name in names] == list(ops)


def test_a_raw_function_of_an_extension_is_refused_by_name() -> None:
    import _struct  # any extension module does: what counts is that its functions are no operators

    try:
        with pytest.raises(GuardError, match=r"_struct::pack_into: a function of an extension module.*TORCH_LIBRARY"):
            guard.enable(_struct.__name__, writes={"pack_into": ["buffer"]})
    finally:
        guard.disable()


def test_an_overload(scratch) -> None:
    name, library = scratch
    library.define("op.fast(Tensor x, Tensor output) -> Tensor")
    library.impl("op.fast", lambda x, output: output.copy_(x * 2), "CPU")
    found = guard.enable(name, writes={"op.fast": ["output"]}, returns={"op.fast": "output"})
    assert [d.action for d in found.decisions] == [Action.GUARDED]

    def run(x: torch.Tensor) -> torch.Tensor:
        output = torch.zeros_like(x)
        getattr(torch.ops, name).op.fast(x, output)
        return output + 1

    assert oplib.outcome(run, "aot_eager") == "right"


def test_the_table_covers_its_namespaces() -> None:
    found = guard.enable()
    try:
        six = (
            "custom_esimd_kernels_vllm",
            "esimd_topk_v2",
            "moe_ops",
            "moe_int4_ops",
            "moe_int4_prefill_ops",
            "eagle_ops",
        )
        assert {*six, "esimd_ops"} <= {
            *found.pending,
            *(d.op.split("::")[0] for d in found.decisions),
        }
        assert all(late.registered(space) == [] for space in found.pending)
    finally:
        guard.disable()


def test_a_published_operator_that_returns_a_buffer_which_it_keeps() -> None:
    library = torch.library.Library("moe_ops", "FRAGMENT")
    arguments = table.everything().entries["moe_forward_full_v2"].arguments
    words = ", ".join(f"{'int' if name.startswith(('top_k', 'n')) else 'Tensor'} {name}" for name in arguments)
    library.define(f"moe_forward_full_v2({words}) -> Tensor")
    kept = torch.zeros(4)
    library.impl("moe_forward_full_v2", lambda x, *_: kept.copy_(x * 0.5), "CPU")
    fake = lambda x, *_: torch.empty_like(x)  # noqa: E731
    torch.library.register_fake("moe_ops::moe_forward_full_v2", fake, lib=library)
    weight = torch.ones(1)
    rest = [1 if name.startswith(("top_k", "n")) else weight for name in arguments[1:]]

    def layers(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x + torch.ops.moe_ops.moe_forward_full_v2(torch.tanh(x), *rest)
        return x

    try:
        assert oplib.outcome(layers, "inductor") == "wrong"
        (found,) = guard.enable("moe_ops").decisions
        assert found.action is Action.CLONED
        assert oplib.outcome(layers, "inductor") == "right"
    finally:
        guard.disable()
        library._destroy()
