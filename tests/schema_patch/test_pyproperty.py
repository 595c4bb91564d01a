"""Programs run before and after: with the rewritten calls, an operator that returns nothing is no loss to anyone.

The oracle is Python itself. Each program runs on operators that hand their buffer back and, rewritten, on operators that
return None: it must call, make and return the same things in the same order, or else a finding must be left.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from schema_patch.python import wrap
from schema_patch.schemas.gone import VoidedOperator
from schema_patch.text import edits

GONE = [VoidedOperator("ns", "norm", ("x", "out", "w"), "out"), VoidedOperator("ns", "add", ("out", "r"), "out")]

BUFFERS = ["o", "x", "make()", "box.o", "box[0]", "(o)", "make() if x else o", "[o][0]"]
HANDLES = ["torch.ops.ns.{}", "ns.{}", "torch.ops.ns.{}.default", "getattr(ns, '{}')", "{}"]
CALLS = [
    ("norm", "x, {}, w=x"),
    ("norm", "w=x, x=1, out={}"),
    ("norm", "\n            x,  # x\n            {},\n            x"),
    ("add", "{}, x"),
    ("add", "r=make(), out={}"),
    ("add", "*[{}], r=x"),
]
PLACES = [
    "return {call}",
    "return ({call})",
    "return (  # why\n        {call}\n    )",
    "out = {call}\n    return out",
    "o = {call}\n    return o",
    "a = box.o = {call}\n    return a, box.o",
    "a: int = {call}; return a",
    "a = \\\n        {call}\n    return [a]",
    "box[1] = {call}  # kept\n    return box[1]",
    "if x: return {call}\n    return 1",
    "if x: \\\n        return {call}",
    "for _ in [1, 2]:\n        a = {call}\n    return a",
    "try:\n        return {call}\n    finally:\n        make()",
    "with box:\n        o = {call};\n    return o",
    "{call}\n    return o",
    "return {call}, 1",
    "return (lambda: {call})()",
    "return [{call} for o in [o]]",
    "return {call} or 1",
]
HEAD = "import torch\nns = torch.ops.ns\nnorm, add = ns.norm, torch.ops.ns.add\n"


class Thing:
    """A tensor, or what holds one, that says by name what it is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: dict[int, Any] = {}

    def __repr__(self) -> str:
        return self.name

    def __getitem__(self, key: int) -> Any:
        return self.held[key]

    def __setitem__(self, key: int, value: Any) -> None:
        self.held[key] = value

    def __enter__(self) -> Thing:
        return self

    def __exit__(self, *_: object) -> None: ...


def run(text: bytes, *, void: bool) -> list[object]:
    """What a program calls and makes, and what its function returns."""
    log: list[object] = []

    def operator(gone: VoidedOperator) -> Any:
        def call(*args: object, **kwargs: object) -> object:
            bound = {**dict(zip(gone.arguments, args, strict=False)), **kwargs}
            log.append((gone.op, repr(sorted(bound.items()))))
            return None if void else bound[gone.buffer or ""]

        call.default = call  # type: ignore[attr-defined]
        return call

    def make() -> Thing:
        log.append(f"made {len(log)}")
        return Thing(f"t{len(log)}")

    torch = SimpleNamespace(ops=SimpleNamespace(ns=SimpleNamespace(**{gone.op: operator(gone) for gone in GONE})))
    box = Thing("box")
    box.o = box.held[0] = Thing("inner")  # type: ignore[attr-defined]
    space: dict[str, Any] = {"make": make, "box": box}
    with patch.dict(sys.modules, torch=torch):
        exec(compile(text, "program", "exec"), space)
        log.append(repr(space["f"](Thing("x"), Thing("o"))))
    return [*log, repr(box.held), repr(box.o)]  # type: ignore[attr-defined]


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    buffer = draw(st.sampled_from(BUFFERS))
    op, arguments = draw(st.sampled_from(CALLS))
    call = f"{draw(st.sampled_from(HANDLES)).format(op)}({arguments.format(buffer)})"
    body = draw(st.sampled_from(PLACES)).format(call=call)
    text = f"{HEAD}def f(x, o):\n    {body}"
    if draw(st.booleans()):
        text = text.replace("    ", "\t")
    text += draw(st.sampled_from(["", "\n", "  # end", "  # é\n", "\n\n\n"]))
    data = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data


@settings(max_examples=400, deadline=None)
@given(programs())
def test_rewritten_programs_do_what_they_did(before: bytes) -> None:
    new, made, _ = wrap.rewrite(before, "a.py", GONE)
    assert edits.apply(new, edits.inverse(before, made)) == before
    assert wrap.rewrite(new, "a.py", GONE)[1] == ()
    if not wrap.judge(new, "a.py", GONE):
        assert run(new, void=True) == run(before, void=False)


def test_the_oracle_sees_a_lost_return() -> None:
    text = (HEAD + "def f(x, o):\n    return ns.norm(x, o, x)").encode()
    assert run(text, void=True) != run(text, void=False)


def test_every_whole_result_is_rewritten() -> None:
    whole = [place for place in PLACES if place.count("{call}") == 1][:14]
    for place in whole:
        text = HEAD + "def f(x, o):\n    " + place.format(call="ns.norm(x, (make()), x)")
        new = wrap.rewrite(text.encode(), "a.py", GONE)[0]
        assert b":= make())" in new, place
        assert wrap.judge(new, "a.py", GONE) == []
        assert run(new, void=True) == run(text.encode(), void=False)
