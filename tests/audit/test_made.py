"""Functions that macros define where declarations stand are read as if they were written there."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import trees

from schema_patch.inference.index.texts import SourceTexts

BODIES = {
    "x.sum(); y.zero_();": ("read only", "written"),
    "y.copy_(x);": ("read only", "written"),
    "x.sum(); y.sum();": ("read only", "read only"),
}
# How a macro makes `NAME` with this body; `{}` stands for it.
MAKERS = {
    "whole": ("#define DEFINE(name) void name(at::Tensor x, at::Tensor y) {{ {} }}", "DEFINE(NAME)"),
    "with a semicolon": ("#define DEFINE(name) void name(at::Tensor x, at::Tensor y) {{ {} }}", "DEFINE(NAME);"),
    "a head": ("#define HEAD(name) void name(at::Tensor x, at::Tensor y)", "HEAD(NAME) {{\n {}\n}}"),
    "a template's head": ("#define HEAD(name) void name(at::Tensor x, at::Tensor y)", "template <class T> HEAD(NAME) {{ {} }}"),
    "a static head": ("#define HEAD(name) void name(at::Tensor x, at::Tensor y)", "static HEAD(NAME) {{ {} }}"),
    "a body": ("#define DEFINE(name, ...) void name(at::Tensor x, at::Tensor y) {{ __VA_ARGS__ }}", "DEFINE(NAME, {})"),
    "a body in braces": ("#define DEFINE(name, body) void name(at::Tensor x, at::Tensor y) body", "DEFINE(NAME, {{ {} }})"),
    "all but the name": ("#define DEFINE(name, args, body) void name args {{ body }}", "DEFINE(NAME, (at::Tensor x, at::Tensor y), {})"),
    "a pasted name": ("#define DEFINE(a, b) void a##b(at::Tensor x, at::Tensor y) {{ {} }}", "DEFINE(ma, de)"),
    "a macro's macro": ("#define INNER(name) void name(at::Tensor x, at::Tensor y) {{ {} }}\n#define DEFINE(name) INNER(name)", "DEFINE(NAME)"),
    "a macro that is given": ("#define ONE(name) void name(at::Tensor x, at::Tensor y) {{ {} }}\n#define EACH(f) f(other) f(NAME)", "EACH(ONE)"),
    "two functions": ("#define DEFINE(name) void name##_(at::Tensor x, at::Tensor y) {{ {} }} void name(at::Tensor x, at::Tensor y) {{ name##_(x, y); }}", "DEFINE(NAME)"),
    "a class": ("#define DEFINE(name) struct name##K {{ void run(at::Tensor x, at::Tensor y) {{ {} }} }}; void name(at::Tensor x, at::Tensor y) {{ name##K k; k.run(x, y); }}", "DEFINE(NAME)"),
    "behind another": ("#define NOTE(x)\n#define DEFINE(name) void name(at::Tensor x, at::Tensor y) {{ {} }}", "NOTE(a) DEFINE(NAME) void last() {{}}"),
}  # fmt: skip
PLACES = {
    "alone": ("MAKE", "NAME"),
    "in a namespace": ("namespace inner {\nMAKE\n}", "inner::NAME"),
    "behind a function": ("void first(at::Tensor t) {}\nMAKE", "NAME"),
    "as a method": ("struct Owner {\n int n;\nMAKE\n};", "Owner().NAME"),
    # The other one only reads, and would be taken for it.
    "beside one of its name": ("namespace other { void NAME(at::Tensor x, at::Tensor y) { x.sum(); y.sum(); } }\nnamespace mine {\nMAKE\nvoid go(at::Tensor x, at::Tensor y) { NAME(x, y); }\n}", "mine::go"),
}  # fmt: skip
CASES = list(itertools.product(MAKERS, PLACES, BODIES))


def code(maker: str, place: str, body: str) -> tuple[str, str]:
    """The macro, and what uses it in an operator."""
    macro, use = (text.format(body) for text in MAKERS[maker])
    around, name = PLACES[place]
    made = around.replace("MAKE", use).replace("NAME", "made")
    call = name.replace("NAME", "made")
    return macro.replace("NAME", "made"), f"{made}\nvoid op(at::Tensor a, at::Tensor b) {{ {call}(a, b); }}"


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this file", "in a header"])
def test_what_a_macro_makes_is_what_it_would_be_by_hand(tmp_path: Path, maker: str, elsewhere: bool) -> None:
    for place, body in itertools.product(PLACES, BODIES):
        if place == "as a method" and maker in ("a template's head", "a static head"):
            continue
        macro, made = code(maker, place, body)
        more = {"macros_h": macro} if elsewhere else {}
        found = trees.answers(tmp_path, made if elsewhere else f"{macro}\n{made}", **more)
        assert tuple(found.values()) == BODIES[body], (place, body)


def test_where_it_stands_is_told(tmp_path: Path) -> None:
    macro = "#define DEFINE(name) void name(at::Tensor x) { x.zero_(); }\n#define HEAD(name) void name(at::Tensor x)\n"
    uses = "DEFINE(one)\nHEAD(two) {\n  x.sum();\n  x.add_(1);\n}\n"
    text = trees.source(f"{macro}{uses}void op(at::Tensor a, at::Tensor b) {{ one(a); two(b); }}")
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=text))
    lines = text.split("\n")
    assert [lines[answer.chain[-1][1] - 1].strip() for answer in found.answers] == ["DEFINE(one)", "x.add_(1);"]


@pytest.mark.parametrize(
    ("macro", "use"),
    [
        ("", "DEFINE(made)"),
        ("", "HEAD(made) { b.zero_(); }"),
        ("#define BEGIN(name) void name(at::Tensor x, at::Tensor y) { x.sum();", "BEGIN(made) y.zero_(); }"),
        (
            "#define BEGIN(name) void name(at::Tensor x, at::Tensor y) { x.sum();\n#define END }",
            "BEGIN(made) y.zero_(); END",
        ),
        ("#define DEFINE(name) DEFINE2(name)\n#define DEFINE2(name) DEFINE3(name)", "DEFINE(made)"),
    ],
)
def test_what_is_not_followed_is_unknown_and_the_macro_is_named(tmp_path: Path, macro: str, use: str) -> None:
    text = trees.source(f"{macro}\n{use}\nvoid op(at::Tensor a, at::Tensor b) {{ made(a, b); }}")
    (found,) = trees.infer(trees.write(tmp_path, op_cpp=text))
    assert {answer.kind.value for answer in found.answers} == {"unknown"}
    assert all(f"perhaps defined by {use.partition('(')[0]}" in answer.reason for answer in found.answers)


def test_it_fails_where_macros_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceTexts, "define", lambda *_: None)
    macro, made = code("whole", "beside one of its name", "x.sum(); y.zero_();")
    assert trees.answers(tmp_path, f"{macro}\n{made}") == {"a": "read only", "b": "read only"}  # the other's
