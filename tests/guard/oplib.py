"""A library of operators of every kind of untruth, registered from Python; import it to have them."""

from __future__ import annotations

import torch

NAMESPACE = "liars"
library = torch.library.Library(NAMESPACE, "FRAGMENT")
kept = [torch.zeros(4) for _ in range(4)]
calls = [0]


def _two(x: torch.Tensor, o0: torch.Tensor, o1: torch.Tensor) -> None:
    o0.copy_(x * 2)
    o1.copy_(x * 3)


def _in_place(h: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    r.add_(h)
    return h.copy_(r * 2)


def _kept(x: torch.Tensor) -> torch.Tensor:
    calls[0] += 1
    return kept[calls[0] % len(kept)].copy_(x * 0.5)


def _list(x: torch.Tensor, outs: list[torch.Tensor]) -> None:
    for index, out in enumerate(outs):
        out.copy_(x + index)


# schema: implementation, fake as a serving framework would register it (None: there is none)
OPERATORS = {
    "plain(Tensor x, Tensor output) -> Tensor": (lambda x, output: output.copy_(x * 2), torch.empty_like),
    "no_fake(Tensor x, Tensor output) -> Tensor": (lambda x, output: output.copy_(x * 2), None),
    "alias(Tensor x, Tensor(a!) output) -> Tensor(a!)": (lambda x, output: output.copy_(x * 2), None),
    "void(Tensor x, Tensor output) -> ()": (lambda x, output: (output.copy_(x * 2), None)[1], lambda *_: None),
    "two(Tensor x, Tensor(a!) o0, Tensor o1) -> ()": (_two, lambda *_: None),
    "in_place(Tensor h, Tensor r) -> Tensor": (_in_place, lambda h, r: torch.empty_like(h)),
    "keyword(Tensor x, *, Tensor output, float scale=2.0) -> Tensor": (
        lambda x, *, output, scale=2.0: output.copy_(x * scale), lambda x, *, output, scale=2.0: torch.empty_like(x)),
    "kept(Tensor x) -> Tensor": (_kept, torch.empty_like),
    "lists(Tensor x, Tensor[] outs) -> ()": (_list, lambda *_: None),
    "right(Tensor x, Tensor(a!) output) -> ()": (lambda x, output: (output.copy_(x * 2), None)[1], None),
    "optional(Tensor x, Tensor? output=None) -> Tensor": (
        lambda x, output=None: x * 2 if output is None else output.copy_(x * 2), lambda x, output=None: torch.empty_like(x)),
    "number(Tensor x, int n) -> Tensor": (lambda x, n: x * n, lambda x, n: torch.empty_like(x)),
}  # fmt: skip

WRITES = {
    "plain": ["output"], "no_fake": ["output"], "alias": ["output"], "void": ["output"], "two": ["o0", "o1"],
    "in_place": ["h", "r"], "keyword": ["output"], "lists": ["outs"], "right": ["output"], "optional": ["output"],
}  # fmt: skip
RETURNS = {"plain": "output", "no_fake": "output", "in_place": "h", "keyword": "output", "kept": "private buffer of 4",
           "optional": "output"}  # fmt: skip

for _schema, (_implementation, _fake) in OPERATORS.items():
    _name = _schema.partition("(")[0]
    library.define(_schema)
    library.impl(_name, _implementation, "CompositeExplicitAutograd" if _fake is None and _name != "no_fake" else "CPU")
    if _fake is not None:
        fake = (lambda x, output: torch.empty_like(output)) if _name == "plain" else _fake
        torch.library.register_fake(f"{NAMESPACE}::{_name}", fake, lib=library)

ops = torch.ops.liars


def buffer_read(op):
    def program(x):
        output = torch.zeros_like(x)
        op(x, output)
        return output + 1

    return program


def return_read(op):
    def program(x):
        output = torch.zeros_like(x)
        return op(x, output) + output

    return program


def buffer_view(op):
    def program(x):
        base = torch.zeros(3, *x.shape, dtype=x.dtype)
        op(x, base[1])
        return base + 1

    return program


def two_calls(op):
    def program(x):
        output = torch.zeros_like(x)
        op(x, output)
        first = output * 3
        op(first, output)
        return first, output - 1

    return program


def later_in_place(op):
    def program(x):
        output = torch.zeros_like(x)
        op(x, output)
        output.add_(1)
        op(output, x := x + 0)
        return output, x

    return program


def input_buffer(op):
    def program(x):
        output = x + 0
        op(output, output2 := torch.empty_like(x))
        output.mul_(2)
        return output, output2

    return program


def several(x):
    o0, o1 = torch.zeros_like(x), torch.zeros_like(x)
    ops.two(x, o0, o1)
    return o0 + o1


def residual(x):
    h, r = x + 0, x * 3
    y = ops.in_place(h, r)
    return y + 1, r, h


def keywords(x):
    output = torch.zeros_like(x)
    ops.keyword(x, scale=5.0, output=output)
    return output + 1


def rings(x):
    for _ in range(7):
        x = x + ops.kept(torch.tanh(x))
    return x


def listed(x):
    outs = [torch.zeros_like(x) for _ in range(3)]
    ops.lists(x, outs)
    return outs[0] + outs[1] * outs[2]


def given(x):
    output = torch.zeros_like(x)
    return ops.optional(x, output) + output


SINGLE = [buffer_read, return_read, buffer_view, two_calls, later_in_place, input_buffer]
PROGRAMS = {f"{name}-{make.__name__}": make(getattr(ops, name)) for name in ("plain", "no_fake", "alias", "void", "right")
            for make in SINGLE if not (name in ("void", "right") and make is return_read)}  # fmt: skip
PROGRAMS |= {f.__name__: f for f in (several, residual, keywords, rings, listed, given)}


def outcome(program, backend: str, x: torch.Tensor | None = None, **options) -> str:
    """right, wrong, or refused with the reason."""
    torch._dynamo.reset()
    x = torch.arange(4.0) if x is None else x
    expected = program(x.clone())
    expected = [t.clone() for t in (expected if isinstance(expected, tuple) else (expected,))]
    try:
        got = torch.compile(program, backend=backend, fullgraph=True, **options)(x.clone())
    except Exception as error:  # noqa: BLE001  whatever torch refuses with
        return f"refused: {error}"
    got = got if isinstance(got, tuple) else (got,)
    return "right" if all(torch.equal(a, b) for a, b in zip(expected, got, strict=True)) else "wrong"
