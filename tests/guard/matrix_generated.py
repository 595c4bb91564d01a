"""Random programs over the operators of the matrix: views, overlaps, aliases, writes of torch and of the operators."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

ROWS, COLUMNS = 4, 6
Shape = tuple[int, ...]


class Writer:
    """Writes one program, statement by statement; knows the shape of every variable."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shapes: dict[str, Shape] = {"x": (ROWS, COLUMNS)}
        self.lines: list[str] = []

    def pick(self, shape: Shape | None = None) -> str:
        return self.random.choice([name for name, found in self.shapes.items() if shape in (None, found)])

    def bind(self, shape: Shape, expression: str) -> None:
        name = f"v{len(self.shapes)}"
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape

    def make(self) -> None:
        name = self.pick()
        self.bind(self.shapes[name], self.random.choice(["torch.zeros_like({0})", "{0} * 0.5", "{0} + 1"]).format(name))

    def view(self) -> None:
        name = self.pick()
        shape = self.shapes[name]
        start = self.random.randrange(max(1, shape[0] - 1))
        ways: dict[str, Shape] = {
            f"{name}[{start}:{start + 2}]": (min(2, shape[0]), *shape[1:]),
            f"{name}[{start}]": shape[1:],
            f"{name}.t()": shape[::-1],
            f"{name}.view_as({name})": shape,
            f"{name}.detach()": shape,
        }
        expression = self.random.choice([way for way, found in ways.items() if found])
        self.bind(ways[expression], expression)

    def write(self) -> None:
        name = self.pick()
        written = self.random.choice(["add_(1)", "mul_(2)", "neg_()", "zero_()"])
        self.lines.append(f"{name}.{written}")

    def call(self) -> None:
        out = self.pick()
        shape = self.shapes[out]
        read, other = self.pick(shape), self.pick(shape)
        kind = self.random.choice(["write", "write", "lists", "optional", "norm", "attend"])
        if kind == "write":
            self.bind(shape, f"ops.write({read}, {out})")
        elif kind == "lists":
            self.lines.append(f"ops.raw.lists({read}, [{', '.join([out, other][: self.random.randrange(3)])}])")
        elif kind == "optional":
            self.lines.append(f"ops.raw.optional({read}, {self.random.choice([out, out, 'None'])})")
        elif kind == "norm":
            self.bind(shape, f"ops.raw.norm({read}, {out})")
        else:
            self.bind(shape, f"ops.attend({read}, {out})[0]")
            self.bind((1,), f"ops.attend({read}, {out})[1]")


def program(seed: int) -> tuple[str, Callable[..., Any]]:
    """The text of a program, and the program: `function(ops, x)`, x of (ROWS, COLUMNS)."""
    writer = Writer(seed)
    for _ in range(writer.random.randint(3, 9)):
        writer.random.choice([writer.make, writer.view, writer.view, writer.write, writer.call, writer.call])()
    results = ", ".join(writer.pick() + writer.random.choice(["", " * 1.5"]) for _ in range(3))
    text = "\n    ".join(["def function(ops, x):", *writer.lines, f"return {results}"])
    found: dict[str, Any] = {"torch": torch}
    exec(text, found)
    return text, found["function"]
