"""Planning annotations on schema text: against ops as published, and the corners of the rules."""

import pytest

from schema_patch.model import Effect, Verdict
from schema_patch.schemas import annotate, grammar, rules, table
from schema_patch.schemas.annotate import Returns

KNOWN = table.load()


def plan(text: str, writes: str, returns: str, style: Returns = Returns.ALIAS, *, bare: bool = False) -> str:
    effect = Effect("op", tuple(writes.split()), returns, "test")
    return annotate.apply(text, annotate.plan(grammar.parse(text), effect, style, bare=bare))


@pytest.mark.parametrize(
    ("before", "writes", "returns", "alias", "void"),
    [
        ("op(Tensor x, Tensor o) -> Tensor", "o", "o", "op(Tensor x, Tensor(a!) o) -> Tensor(a!)", "op(Tensor x, Tensor(a!) o) -> ()"),
        ("op(Tensor? o) -> Tensor", "o", "o", "op(Tensor(a!)? o) -> Tensor(a!)", "op(Tensor(a!)? o) -> ()"),
        ("op(Tensor[] o) -> ()", "o", "nothing", "op(Tensor(a!)[] o) -> ()", "op(Tensor(a!)[] o) -> ()"),
        ("op(Tensor(a) o) -> Tensor(a)", "o", "o", "op(Tensor(a!) o) -> Tensor(a!)", "op(Tensor(a!) o) -> ()"),
        ("op(Tensor! o) -> Tensor", "o", "o", "op(Tensor(a!) o) -> Tensor(a!)", "op(Tensor! o) -> ()"),
        ("op(Tensor (b!) o, Tensor p) -> Tensor", "o p", "p", "op(Tensor (b!) o, Tensor(a!) p) -> Tensor(a!)",
         "op(Tensor (b!) o, Tensor(a!) p) -> ()"),
        ("op(Tensor x) -> Tensor", "", "x", "op(Tensor(a) x) -> Tensor(a)", "op(Tensor x) -> ()"),
        ("op(Tensor x, Tensor o) -> Tensor", "o", "fresh", "op(Tensor x, Tensor(a!) o) -> Tensor", "op(Tensor x, Tensor(a!) o) -> Tensor"),
        ("op(Tensor(a!) o) -> Tensor(b!)", "o", "o", "op(Tensor(a!) o) -> Tensor(a!)", "op(Tensor(a!) o) -> ()"),
        ("op(Tensor(a!) x, Tensor o) -> ()", "o", "nothing", "op(Tensor(a!) x, Tensor(b!) o) -> ()", "op(Tensor(a!) x, Tensor(b!) o) -> ()"),
    ],
)  # fmt: skip
def test_plan(before: str, writes: str, returns: str, alias: str, void: str) -> None:
    assert plan(before, writes, returns) == alias
    assert plan(before, writes, returns, Returns.VOID) == void
    assert plan(alias, writes, returns) == alias
    assert plan(void, writes, returns, Returns.VOID) == void


def test_more_arguments_than_letters() -> None:
    names = [f"o{i}" for i in range(30)]
    text = f"op({', '.join(f'Tensor {n}' for n in names)}) -> ()"
    parsed = grammar.parse(plan(text, " ".join(names), "nothing"))
    sets = [next(iter(arg.type.sets)) for arg in parsed.args]
    assert len(set(sets)) == 30
    assert sets[25:28] == ["z", "a1", "b1"]


def test_bare_habit_counts_the_majority() -> None:
    assert annotate.habit([grammar.parse("a(Tensor! x, Tensor! y, Tensor(a!) z) -> ()")])
    assert not annotate.habit([grammar.parse("a(Tensor! x, Tensor(a!) z) -> ()")])
    assert not annotate.habit([])
    assert plan("op(Tensor x, Tensor o) -> ()", "o", "nothing", bare=True) == "op(Tensor x, Tensor! o) -> ()"


def test_strip_takes_every_write_and_nothing_else() -> None:
    text = "op(Tensor(a!) x, Tensor(b) v, Tensor!? y) -> (Tensor(a!), Tensor(b))"
    assert (
        annotate.apply(text, annotate.strip(grammar.parse(text)))
        == "op(Tensor x, Tensor(b) v, Tensor? y) -> (Tensor, Tensor(b))"
    )


@pytest.mark.parametrize(
    ("returns", "text"),
    [
        ("o, fresh", "op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> (Tensor(a!), Tensor)"),
        ("p, o", "op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> (Tensor(b!), Tensor(a!))"),
        ("o, o", "op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> (Tensor(a!), Tensor(a!))"),
        ("x, p", "op(Tensor(a) x, Tensor(b!) o, Tensor(c!) p) -> (Tensor(a), Tensor(c!))"),
        ("fresh, fresh", "op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> (Tensor, Tensor)"),
    ],
)
def test_each_result_is_tied_to_the_argument_that_it_is(returns: str, text: str) -> None:
    before = "op(Tensor x, Tensor o, Tensor p) -> (Tensor, Tensor)"
    assert plan(before, "o p", returns) == text
    assert rules.judge(grammar.parse(text), Effect("op", ("o", "p"), returns, "")).verdict is not Verdict.WRONG


def published(name: str) -> str:
    entry = KNOWN.entries[name]
    return f"{name}({', '.join(f'Tensor {a}' for a in entry.arguments)}) -> {'()' if entry.returns == 'nothing' else 'Tensor'}"


@pytest.mark.parametrize("name", sorted(KNOWN.entries))
def test_every_operator_of_the_table(name: str) -> None:
    """As published it is wrong; annotated it says exactly what the table says, and no letter is given twice."""
    before = grammar.parse(published(name))
    effect = KNOWN.effect(before)
    assert effect
    assert rules.judge(before, effect).verdict is Verdict.WRONG
    for style, verdict in ((Returns.VOID, Verdict.RIGHT), (Returns.ALIAS, Verdict.NEEDS_GUARD)):
        after = grammar.parse(annotate.apply(before.text, annotate.plan(before, effect, style)))
        assert after.writes == effect.writes
        assert len(after.sets) == len(effect.writes)
        assert rules.judge(after, effect).verdict is (verdict if before.returns else Verdict.RIGHT)
        for argument in effect.writes:  # annotating all but one leaves the operator silently wrong
            position = next(a.type.span for a in after.args if a.name == argument)
            partial = after.text[: position.start] + "Tensor" + after.text[position.end :]
            assert rules.judge(grammar.parse(partial), effect).verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("op(Tensor x, Tensor o, Tensor p) -> ()", "SP101"),
        ("op(Tensor x, Tensor(a!) o, Tensor p) -> ()", "SP102"),
        ("op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> Tensor", "SP103"),
        ("op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> Tensor(b!)", "SP103"),
        ("op(Tensor x, Tensor! o, Tensor(b!) p) -> Tensor(x_out)", "SP103"),
        ("op(Tensor x, Tensor(a!) o, Tensor(b!) p) -> Tensor(a!)", "SP105"),
        ("op(Tensor(c!) x, Tensor(a!) o, Tensor(b!) p) -> ()", "SP106"),
        ("op(Tensor(c!) x, Tensor(a!) o, Tensor(b!) p) -> Tensor(a!)", "SP106"),
        ("op(Tensor x, Tensor(a!) o, Tensor! p) -> ()", ""),
    ],
)
def test_rules(text: str, code: str) -> None:
    assert rules.judge(grammar.parse(text), Effect("op", ("o", "p"), "o", "test")).code == code


def test_a_private_buffer_is_wrong_whatever_is_annotated() -> None:
    effect = Effect("op", (), "private buffer", "test")
    assert rules.judge(grammar.parse("op(Tensor x) -> Tensor"), effect).code == "SP104"
    assert rules.judge(grammar.parse("op(Tensor x) -> Tensor"), None).verdict is Verdict.UNKNOWN
