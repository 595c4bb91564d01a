"""Schemas annotated in the length that they have, held against torch's own parser."""

import pytest
import torch
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from strategies import schemas

from schema_patch.model import Effect, Verdict
from schema_patch.schemas import fit, grammar, rules
from schema_patch.schemas.grammar import Schema

SETTINGS = settings(max_examples=1000, deadline=None)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, Effect]:
    """A schema and what its operator does: writes some tensors, and perhaps hands one back."""
    schema = grammar.parse(draw(schemas()))
    assume(len({arg.name for arg in schema.args}) == len(schema.args))
    tensors = list(dict.fromkeys(arg.name for arg in schema.args if arg.type.is_tensor))
    written = draw(st.lists(st.sampled_from(tensors), unique=True)) if tensors else []
    writes = tuple(arg.name for arg in schema.args if arg.name in {*written, *schema.writes} and arg.name in tensors)
    plain = len(schema.returns) == 1 and schema.returns[0].type.is_tensor
    returned = draw(st.sampled_from(["fresh", *tensors])) if plain else "unknown"
    return schema, Effect(schema.op, tuple(dict.fromkeys(writes)), returned, "drawn")


def parsed(text: str) -> torch.FunctionSchema:
    return torch._C.parse_schema(text)


def attributes(schema: torch.FunctionSchema) -> object:
    """All that annotations do not say."""
    rows = [
        [
            (a.name, str(a.type), str(a.real_type), a.N, a.kwarg_only, a.has_default_value(), repr(a.default_value))
            for a in side
        ]
        for side in (schema.arguments, schema.returns)
    ]
    return schema.name, schema.overload_name, rows


def sets(side: object) -> list[object]:
    found = [argument.alias_info for argument in side]
    return [
        info and (info.is_write, {s for s in info.before_set if "$" not in s}, "*" in info.after_set) for info in found
    ]


@SETTINGS
@given(cases())
def test_the_new_text_says_what_was_meant_and_nothing_else(case: tuple[Schema, Effect]) -> None:
    schema, effect = case
    before = parsed(schema.text)
    try:
        new = fit.annotated(schema, effect)
    except fit.NoRoom:
        event("no room")
        return
    event("as it was" if new == schema.text else "changed")
    after = parsed(new)
    assert len(new) == len(schema.text)
    assert attributes(after) == attributes(before)
    declared = {arg.name for arg in after.arguments if arg.alias_info and arg.alias_info.is_write}
    assert declared >= {*effect.writes}
    assert declared == {*effect.writes, *(a.name for a in before.arguments if a.alias_info and a.alias_info.is_write)}
    for one, old, new_ in zip(before.arguments, sets(before.arguments), sets(after.arguments), strict=True):
        if one.name not in effect.writes and one.name != effect.returned_argument:
            assert new_ == old  # what was not meant says what it said
    judged = rules.judge(grammar.parse(new), effect)
    if effect.returned_argument in effect.writes and schema.returns[0].type.is_write is False:
        assert judged.verdict is not Verdict.WRONG or any(schema.returns[0].type.aliases())
    assert new == fit.annotated(grammar.parse(new), effect) or judged.verdict is not Verdict.WRONG


@SETTINGS
@given(cases())
def test_stripped_and_put_back(case: tuple[Schema, Effect]) -> None:
    schema, _ = case
    bare = fit.stripped(schema)
    after = parsed(bare)
    assert len(bare) == len(schema.text)
    assert attributes(after) == attributes(parsed(schema.text))
    assert not any(a.alias_info and a.alias_info.is_write for a in (*after.arguments, *after.returns))


PUT_BACK = [
    "f(Tensor(a!) out, Tensor x) -> Tensor(a!)",
    "f(Tensor! out, Tensor x, Tensor! y) -> ()",
    "f(Tensor(a!)? out, Tensor(b!)[] xs, int n=1) -> ()",
    "f(Tensor x,\n  Tensor(a!) y,\n  *, Tensor(b!) out) -> Tensor(b!)",
]


@pytest.mark.parametrize("text", PUT_BACK)
def test_what_was_stripped_comes_back_where_it_was(text: str) -> None:
    schema = grammar.parse(text)
    returned = next(
        (a.name for a in schema.args if schema.returns and a.type.sets & schema.returns[0].type.sets), "nothing"
    )
    effect = Effect("f", schema.writes, returned, "as published")
    found = fit.annotated(grammar.parse(fit.stripped(schema)), effect)
    if schema.returns or "(a!)" in text:
        assert found == text
    assert parsed(found) == parsed(text) or "!" in found.replace("(a!)", "")


NARROW = [
    ("f(Tensor x,Tensor out)->Tensor", "out", 1),
    ("f(Tensor[]xs)->()", "xs", 1),
    ("f(Tensor x, Tensor out) -> Tensor", "out", "f(Tensor x, Tensor! out)->Tensor!"),
    ("f(Tensor out)->()", "out", "f(Tensor!out)->()"),
    ("f(Tensor out, int n) -> ()", "out", "f(Tensor(a!)out,int n)->()"),
]


@pytest.mark.parametrize(("text", "written", "found"), NARROW)
def test_no_room_is_said_in_characters(text: str, written: str, found: str | int) -> None:
    schema = grammar.parse(text)
    effect = Effect("f", (written,), written if schema.returns else "nothing", "drawn")
    if isinstance(found, int):
        with pytest.raises(fit.NoRoom, match=f"{found} more byte"):
            fit.annotated(schema, effect)
    else:
        assert fit.annotated(schema, effect) == found


SHARED = [
    ("f(Tensor x, Tensor y, Tensor out) -> Tensor", "-> Tensor", "nothing", "f(Tensor x,Tensor y,Tensor(a!)out)-> Tensor"),
    ("f(Tensor x, Tensor y, Tensor z, int a, int b, Tensor out, int n) -> Tensor", "Tensor", "out",
     "f(Tensor x,Tensor y,Tensor z,int a,int b,Tensor!out,int n)->Tensor!#Tensor"),
    ("f(Tensor x, Tensor y, Tensor out) -> Tensor", "Tensor", "out", None),
    ("f(Tensor x, Tensor y, Tensor out) -> Tensor", "y, Tensor out) -> Tensor", "nothing", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tail", "returned", "found"), SHARED)
def test_what_is_shared_from_a_place_on_stays(text: str, tail: str, returned: str, found: str | None) -> None:
    schema, effect = grammar.parse(text), Effect("f", ("out",), returned, "drawn")
    if found is None:
        with pytest.raises(fit.NoRoom):
            fit.annotated(schema, effect, text.rindex(tail))
        return
    new = fit.annotated(schema, effect, text.rindex(tail))
    assert new == found
    assert new.endswith(tail)
    assert attributes(parsed(new)) == attributes(parsed(text))
    assert [a.name for a in parsed(new).arguments if a.alias_info] == ["out"]
    assert rules.judge(grammar.parse(new), effect).verdict is not Verdict.WRONG
