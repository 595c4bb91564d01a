"""What is decided of an operator, as values: what it is named by, and what compile caches are kept apart by."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from esimd_ops.guard import Action, Decision, cache_key
from esimd_ops.guard.decide import decide, true_schema
from schema_patch.model import Effect
from schema_patch.schemas import grammar

names = st.sampled_from(["x", "out", "lse"])
effects = st.builds(
    Effect,
    st.just("op"),
    st.lists(names, unique=True).map(tuple),
    st.sampled_from(["out", "lse", "fresh", "private buffer", "private buffer of 4", "unknown", "out, fresh"]),
    st.just("test"),
)
schemas = st.sampled_from(
    ["m::op(Tensor x, Tensor out, Tensor lse) -> Tensor", "m::op(Tensor x, Tensor(a!) out, Tensor lse) -> Tensor",
     "m::op(Tensor x, Tensor? out, Tensor lse) -> (Tensor, Tensor)", "m::op(Tensor x, Tensor(a!) out, Tensor lse) -> Tensor(a!)"]
)  # fmt: skip


@given(schemas, schemas, effects, effects)
def test_the_digest_covers_all_that_changes_what_is_traced(one: str, other: str, first: Effect, second: Effect) -> None:
    a, b = decide(grammar.parse(one), first), decide(grammar.parse(other), second)
    if a.action is Action.UNKNOWN or b.action is Action.UNKNOWN:
        return
    traced = [(d.action, str(d.schema), d.writes, d.results) for d in (a, b)]
    assert (cache_key.digest([a.key]) == cache_key.digest([b.key])) == (traced[0] == traced[1])
    if a.twin and b.twin:
        assert (a.twin == b.twin) == (traced[0] == traced[1])


@given(schemas, effects)
def test_true_schemas_are_schemas_that_torch_reads(text: str, effect: Effect) -> None:
    decision = decide(grammar.parse(text), effect)
    if decision.twin_schema:
        assert {a.name for a in torch._C.parse_schema(decision.twin).arguments if a.alias_info} == set(decision.writes)
        assert torch._C.parse_schema(str(true_schema(decision))).is_mutable == bool(decision.writes)


def test_the_digest_covers_the_version_of_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = Decision("m::op", Action.GUARDED, "", grammar.parse("m::op(Tensor x) -> ()"), ("x",))
    before = cache_key.digest([decision.key])
    monkeypatch.setattr("esimd_ops.guard.decide.__version__", "another")
    assert cache_key.digest([decision.key]) != before
