"""Tables that are made one: what was observed adds up, what a person says is not overruled in silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_patch.model import ToolError
from schema_patch.schemas import grammar, merging, rules, table
from schema_patch.schemas.table import Entry, Table

ARGUMENTS = ("x", "out")


def seen(writes: tuple[str, ...] = (), returns: str = "fresh", never_given: tuple[str, ...] = ()) -> Table:
    entry = Entry(ARGUMENTS, returns, writes=writes, observed=3, evidence="3 of 3 calls", never_given=never_given)
    return Table(("mylib",), {"op": entry}, frozenset())


def said(writes: tuple[str, ...] = (), returns: str = "fresh") -> Table:
    return Table(("mylib",), {"op": Entry(ARGUMENTS, returns, inplace=writes)}, frozenset())


entries = st.builds(
    seen,
    st.sampled_from([(), ("x",), ("out",), ("x", "out")]),
    st.sampled_from(["fresh", "out", "unknown", "private buffer", "private buffer of 4"]),
)


@given(entries, entries)
def test_observations_add_up_in_either_order(one: Table, other: Table) -> None:
    a = merging.merged([(one, "a"), (other, "b")]).entries["op"]
    b = merging.merged([(other, "b"), (one, "a")]).entries["op"]
    assert (a.writes, a.returns, a.observed) == (b.writes, b.returns, b.observed)
    assert set(a.writes) == {*one.entries["op"].writes, *other.entries["op"].writes}
    assert a.observed == 6


@given(entries)
def test_a_table_is_read_as_it_was_written(one: Table) -> None:
    assert table.read(merging.text(one).encode(), "there.toml").entries["op"] == one.entries["op"]


@pytest.mark.parametrize(
    ("person", "observation"),
    [
        (said(("out",), "out"), seen((), "out")),  # it did not happen to write
        (said((), "private buffer of 4"), seen((), "fresh")),  # it was not seen to come again
        (said(("out",), "out"), seen(("out",), "fresh", ("out",))),  # an output that was left out
        (said(("out",), "unknown"), seen(("out",), "out")),
    ],
)
def test_what_was_not_seen_contradicts_nobody(person: Table, observation: Table) -> None:
    for order in ([(person, "a"), (observation, "b")], [(observation, "b"), (person, "a")]):
        assert merging.merged(order).entries["op"].inplace == person.entries["op"].inplace


@pytest.mark.parametrize(
    ("person", "observation"),
    [
        (said((), "fresh"), seen(("x",))),
        (said(("out",), "out"), seen(("x", "out"), "out")),
        (said((), "fresh"), seen((), "private buffer")),
        (said((), "fresh"), seen((), "x")),
        (said(("out",), "out"), seen(("out",), "fresh")),
    ],
)
def test_a_contradiction_is_an_error_with_both_evidences(person: Table, observation: Table) -> None:
    for order in (
        [(person, "mine.toml"), (observation, "this run")],
        [(observation, "this run"), (person, "mine.toml")],
    ):
        with pytest.raises(ToolError) as error:
            merging.merged(order)
        for word in ("operator op", "mine.toml", "said by a person", "this run", "observed: 3 of 3 calls"):
            assert word in str(error.value)


def test_joined_tables_are_asked_in_order_each_for_its_namespace() -> None:
    one, other = (
        said(("out",), "out"),
        Table(("theirs",), {"op": Entry(ARGUMENTS, "fresh", writes=("x",))}, frozenset()),
    )
    whole = table.joined([one, other, table.load()])
    for space, writes in (("mylib", ("out",)), ("theirs", ("x",))):
        schema = grammar.parse(f"{space}::op(Tensor x, Tensor out) -> Tensor")
        effect = whole.effect(schema)
        assert effect is not None
        assert effect.writes == writes
        assert rules.judge(schema, effect).code == "SP101"
    assert whole.effect(grammar.parse("neither::op(Tensor x, Tensor out) -> Tensor")) is None
    assert "esimd_gemv_fp8_pern" in whole.entries
