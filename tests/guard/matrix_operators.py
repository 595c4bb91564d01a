"""The same operators with true and with lying schemas, for the matrix."""

from __future__ import annotations

from typing import Any

import torch

LIBRARIES: list[torch.library.Library] = []


def _write(x, out):
    out.copy_(x * 2 + 1)


def _lists(x, outs):
    for index, out in enumerate(outs):
        out.copy_(x * (index + 2))


def _optional(x, out=None):
    if out is not None:
        out.copy_(x - 3)


def _norm(x, residual):
    residual.add_(x)
    return residual / 2


def _attend(x, out):
    out.copy_(x * 3)
    return x.sum().reshape(1)


# name: (true schema, implementation, fake, what is written)
TRUE = {
    "write": ("(Tensor x, Tensor(a!) out) -> ()", _write, lambda *_: None, "out"),
    "lists": ("(Tensor x, Tensor(a!)[] outs) -> ()", _lists, lambda *_: None, "outs"),
    "optional": ("(Tensor x, Tensor(a!)? out=None) -> ()", _optional, lambda *_, **__: None, "out"),
    "norm": ("(Tensor x, Tensor(a!) residual) -> Tensor", _norm, lambda x, _: torch.empty_like(x), "residual"),
    "attend": ("(Tensor x, Tensor(a!) out) -> Tensor", _attend, lambda x, _: x.new_empty(1), "out"),
}
# The same, handing the buffer back; the wrappers of the true ones do so in Python.
HANDED = {
    "write": ("(Tensor x, Tensor out) -> Tensor", lambda x, out: (_write(x, out), out)[1], lambda _, out: torch.empty_like(out), "out"),
    "attend": ("(Tensor x, Tensor out) -> (Tensor, Tensor)", lambda x, out: (lse := _attend(x, out), (out, lse))[1],
               lambda x, out: (torch.empty_like(out), x.new_empty(1)), "out, fresh"),
}  # fmt: skip
WRITES = {**{name: entry[3] for name, entry in TRUE.items()}, "graded": "out"}


class OfTorch:
    """An operator of torch's own that hands its buffer back, in the place of `write`."""

    def write(self, x: Any, out: Any) -> Any:
        return out.copy_(x * 2 + 1)


class Operators:
    """One registration of the operators: "true", "lying" (no annotation), or "handing" (and the buffer returned)."""

    def __init__(self, kind: str) -> None:
        self.kind, self.namespace = kind, f"matrix_{kind}"
        library = torch.library.Library(self.namespace, "FRAGMENT")
        LIBRARIES.append(library)
        self.returns = {"norm": "fresh", "attend": "fresh"}
        for name, entry in TRUE.items():
            if kind == "handing" and name in HANDED:
                entry = HANDED[name]
                self.returns[name] = entry[3]
            schema, implementation, fake, _ = entry
            library.define(name + (schema if kind == "true" else schema.replace("(a!)", "")))
            library.impl(name, implementation, "CPU")
            torch.library.register_fake(f"{self.namespace}::{name}", fake, lib=library)
        self.raw = getattr(torch.ops, self.namespace)
        self._define_graded(library)

    def _define_graded(self, library: torch.library.Library) -> None:
        """`write` with an autograd kernel of its own, which says that the buffer was written."""
        schema, implementation, fake, _ = (HANDED if self.kind == "handing" else TRUE)["write"]
        library.define("graded" + (schema if self.kind == "true" else schema.replace("(a!)", "")))
        library.impl("graded", implementation, "CPU")
        torch.library.register_fake(f"{self.namespace}::graded", fake, lib=library)
        op = self.raw.graded

        class Graded(torch.autograd.Function):
            @staticmethod
            def forward(context, x, out):
                with torch._C._AutoDispatchBelowAutograd():
                    op(x, out)
                context.mark_dirty(out)
                return out

            @staticmethod
            def backward(context, gradient):
                return gradient * 2, None

        handing = self.kind == "handing"
        library.impl(
            "graded", lambda x, out: Graded.apply(x, out) if handing else (Graded.apply(x, out), None)[1], "Autograd"
        )
        if handing:
            self.returns["graded"] = "out"

    def write(self, x: Any, out: Any) -> Any:
        result = self.raw.write(x, out)
        return result if self.kind == "handing" else out

    def graded(self, x: Any, out: Any) -> Any:
        result = self.raw.graded(x, out)
        return result if self.kind == "handing" else out

    def attend(self, x: Any, out: Any) -> Any:
        result = self.raw.attend(x, out)
        return result if self.kind == "handing" else (out, result)
