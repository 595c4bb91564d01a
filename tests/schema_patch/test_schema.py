"""Wrong text gets an error that says what was expected, with a caret under the place."""

import pytest

from schema_patch.schemas import grammar


@pytest.mark.parametrize(
    ("text", "message", "under"),
    [
        ("op(Tensor x -> ()", "expected ',' or ')', found '->'", "->"),
        ("op(Tensor) -> ()", "expected the argument's name after its type, found ')'", ") ->"),
        ("op(Tensor(!) x) -> ()", "expected the name of an alias set", ") x)"),
        ("op(Tensor(a! x) -> ()", "expected ')' to close the alias annotation, found 'x'", "x)"),
        ("op(Tensor?(a!) x) -> ()", "expected the argument's name after its type, found '('", "(a!)"),
        ("op(Tensor x) -> ();", "unexpected character ';'", ";"),
        ("op(Tensor x)", "expected '->' and the return type, the text ends", ""),
        ("op(Tensor x,) -> ()", "expected a type, found ')'", ") ->"),
        ("op(int a=1, int b) -> ()", "expected a default for 'b'", "b)"),
        ("op(Tenser x) -> ()", "expected a type that torch knows, found 'Tenser'", "Tenser"),
        ("op(int x=nan) -> ()", "expected a default value, found 'nan'", "nan"),
        ("op.default(int x) -> ()", "expected an overload name other than 'default'", "default"),
        ("op(int in) -> ()", "expected the argument's name after its type, found 'in'", "in)"),
        ("op(Tensor x)\n -> ()", "a line break outside parentheses", "\n ->"),
        ("op(\n  Tensor x\n  Tensor y) -> ()", "expected ',' or ')', found 'Tensor'", "Tensor y"),
        ("", "expected the operator's name, the text ends", ""),
    ],
)
def test_the_caret_points_at_the_mistake(text: str, message: str, under: str) -> None:
    with pytest.raises(grammar.SchemaError) as caught:
        grammar.parse(text)
    shown, line, caret = str(caught.value).rsplit("\n", 2)
    assert message in shown
    assert text[caught.value.offset :].startswith(under)
    column = len(caret) - 5
    assert caret.strip() == "^"
    assert line[4 + column : 4 + column + 1] in (under[:1].strip(), "")


@pytest.mark.parametrize(
    ("text", "writes", "sets"),
    [
        ("op(Tensor !x) -> ()", ("x",), set()),
        ("op(Tensor(a0!) x, Tensor[](b!) y) -> (Tensor(a0!), Tensor)", ("x", "y"), {"a0", "b"}),
        ("op(Tensor($0! -> ) x, *, (int, int)? g=None) -> ()", ("x",), {"$0"}),
        ("op(Tensor(a -> *) x) -> Tensor(a)", (), {"a", "*"}),
        ("op(Dict(str, Tensor(a!)) x, (Tensor(b!), int) y) -> ()", ("x", "y"), {"a", "b"}),
    ],
)
def test_writes_and_alias_sets(text: str, writes: tuple[str, ...], sets: set[str]) -> None:
    parsed = grammar.parse(text)
    assert parsed.writes == writes
    assert parsed.sets == sets


def test_spans_are_of_the_text() -> None:
    text = "ns::op.out(Tensor( a! ) [] x, *, str s='a, b') ->  Tensor( a! ) y"
    parsed = grammar.parse(text)
    x, s = parsed.args
    assert text[x.type.span.start : x.type.span.end] == "Tensor( a! ) []"
    assert text[x.type.base_span.start : x.type.base_span.end] == "Tensor"
    assert [text[a.span.start : a.span.end] for a in x.type.aliases()] == ["( a! )"]
    assert text[s.span.start : s.span.end] == "str s='a, b'"
    assert s.default == "'a, b'"
    assert s.kwarg_only
    assert not x.kwarg_only
    assert text[parsed.returns_span.start : parsed.returns_span.end] == "Tensor( a! ) y"
    assert (parsed.name, parsed.overload, parsed.op, parsed.namespace) == ("ns::op", "out", "op.out", "ns")
