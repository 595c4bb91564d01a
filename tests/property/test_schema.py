"""The grammar against torch's own parser, on generated schemas and on all that torch registers."""

import json
import subprocess
import sys

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import schemas

from schema_patch.schemas import grammar

SETTINGS = settings(max_examples=400, deadline=None)


def torch_parses(text: str) -> bool:
    try:
        torch._C.parse_schema(text)
    except (RuntimeError, ValueError):
        return False
    return True


def same_meaning(ours: grammar.Schema, theirs: torch.FunctionSchema) -> None:
    assert ours.name == theirs.name
    assert ours.overload == theirs.overload_name
    assert [a.name for a in ours.args] == [a.name for a in theirs.arguments]
    assert [a.kwarg_only for a in ours.args] == [a.kwarg_only for a in theirs.arguments]
    assert [a.default is not None for a in ours.args] == [a.has_default_value() for a in theirs.arguments]
    assert len(ours.returns) == len(theirs.returns)
    for our, their in zip([*ours.args, *ours.returns], [*theirs.arguments, *theirs.returns], strict=True):
        info = their.alias_info
        assert our.type.is_write == bool(info and info.is_write), (str(our), their)
        assert any(True for _ in our.type.aliases()) == bool(info)


@SETTINGS
@given(schemas())
def test_a_generated_schema_means_what_torch_says(text: str) -> None:
    assert torch_parses(text), text
    same_meaning(grammar.parse(text), torch._C.parse_schema(text))


@SETTINGS
@given(schemas())
def test_print_then_parse_is_the_same_schema(text: str) -> None:
    parsed = grammar.parse(text)
    assert grammar.parse(str(parsed)) == parsed
    assert torch_parses(str(parsed))


@SETTINGS
@given(schemas())
def test_every_argument_and_type_knows_its_span(text: str) -> None:
    parsed = grammar.parse(text)
    for arg in (*parsed.args, *parsed.returns):
        inside = text[arg.span.start : arg.span.end]
        assert inside.startswith(text[arg.type.span.start : arg.type.span.end])
        assert text[arg.type.base_span.start : arg.type.base_span.end].startswith(arg.type.base)
        assert arg.name in inside
        for alias in arg.type.aliases():
            assert text[alias.span.start] in "!("
            assert text[alias.span.end - 1] in "!)"
    assert (
        grammar.parse(f"f() -> {text[parsed.returns_span.start : parsed.returns_span.end]}").returns == parsed.returns
    )


@SETTINGS
@given(schemas(), st.data())
def test_what_torch_refuses_is_refused(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    broken = data.draw(
        st.sampled_from([text[:at], text[:at] + text[at + 1 :], text[:at] + data.draw(st.sampled_from(list("(),?!=[]*;")))
                         + text[at:]])
    )  # fmt: skip
    assume(not torch_parses(broken))
    try:
        parsed = grammar.parse(broken)
    except grammar.SchemaError as error:
        assert "^" in str(error)  # noqa: PT017  either outcome is a result
        return
    # We are lenient in a few places, all of them listed; never about which argument is written.
    assert tolerated(parsed), broken


def test_what_parts_two_words_is_what_torch_takes_for_a_space() -> None:
    for text in (f"f(Tensor{chr(code)}x) -> Tensor" for code in range(1, 256)):
        assert _parses(text) == torch_parses(text), repr(text)


def _parses(text: str) -> bool:
    try:
        grammar.parse(text)
    except grammar.SchemaError:
        return False
    return True


def tolerated(parsed: grammar.Schema) -> bool:
    """Forms that our grammar takes and torch does not: `(a! -> )`, `*` among sets, unfit defaults, unfit Dict keys."""
    odd_sets = any(
        alias.after == () or "*" in (*alias.before, *(alias.after or ()))
        for arg in (*parsed.args, *parsed.returns)
        for alias in arg.type.aliases()
    )
    return odd_sets or any(a.default is not None for a in parsed.args) or "Dict(" in parsed.text


ALL_SCHEMAS = """
import json, torch, torch._dynamo, torch.distributed.tensor, torch._inductor.lowering
def row(s):
    args = [[a.name, bool(a.alias_info and a.alias_info.is_write)] for a in s.arguments]
    return [str(s), args, len(s.returns)]
print(json.dumps([row(s) for s in torch._C._jit_get_all_schemas()]))
"""


def test_every_schema_that_torch_registers() -> None:
    """In a process of its own: what else the test run has loaded must not choose what is tested."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALL_SCHEMAS], capture_output=True, text=True, check=True
    )
    registered = json.loads(done.stdout.splitlines()[-1])
    assert len(registered) > 4000
    for text, args, returns in registered:
        parsed = grammar.parse(text)
        assert grammar.parse(str(parsed)) == parsed
        assert [[a.name, a.type.is_write] for a in parsed.args] == args
        assert len(parsed.returns) == returns


@pytest.mark.parametrize("spelling", ["Tensor!", "Tensor(a!)", "Tensor !", "Tensor (a!)", "Tensor(a!)?", "Tensor!?", "Tensor![]",
                                      "Tensor[]!", "Tensor(a!)[]", "Tensor[](b!)", "Tensor(a!)[]?", "Tensor(a!)?[]", "int!?"])  # fmt: skip
def test_spellings_of_a_write(spelling: str) -> None:
    text = f"op({spelling} x) -> ()"
    assert torch_parses(text)
    assert grammar.parse(text).writes == ("x",)
