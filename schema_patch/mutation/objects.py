"""Objects: which class of the tree a type names, and what a constructor or an aggregate puts into the fields.

Knows how objects are made in C++; what is called on them is in methods.py.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from .expressions import arguments
from .methods import Methods
from .values import Value, select

NAME = re.compile(r"[A-Za-z_]\w*")


def bare(text: str) -> str:
    """A type's last name, without template arguments, qualifiers, pointers."""
    text = re.sub(r"\b(?:const|constexpr|static|struct|class|typename|volatile|inline|thread_local)\b", " ", text)
    text = text.split("<")[0]
    names = NAME.findall(text)
    return names[-1] if names else ""


class Objects(Methods):
    """Evaluates the making of objects."""

    def class_of(self, text: str) -> str:
        """The class of the tree that a type names, through aliases; empty where it is none."""
        name = bare(text)
        for _ in range(5):
            if name in self.index.classes and name not in self.types:
                return name
            if self.types.get(name) == "":
                return ""
            target = self.types.get(name) or self.index.aliases.get(name)
            if not target or target == name:
                return ""
            name = target.rpartition("::")[2]
        return ""

    def construct(self, cls: str, inner: Node | None, node: Node) -> Value:
        """An object made from the arguments in parentheses or braces."""
        items = list(self.items(inner)) if inner is not None else []
        values = [value for _, value in items]
        if any(designator for designator, _ in items):
            root = self.state.new("object")
            self.fill(root, (), items)
            self.state.classes[root] = cls
            return frozenset({(root, (), False)})
        return self.build(cls, values, arguments(inner), node)

    def build(self, cls: str, values: list[Value], items: list[Node], node: Node) -> Value:
        root = self.state.new("object")
        made: Value = frozenset({(root, (), False)})
        if not cls:
            self.fill(root, (), [("", value) for value in values])
            self.run_functors(values, node)
            return made.union(*values)
        self.state.classes[root] = cls
        path = self.body.function.path
        makers = [f for f in self.index.methods(cls, cls, len(values), path) if f.scope[-1:] == (cls,)]
        if makers:
            self.apply(makers, items, values, select(made, "&"), node)
        else:
            self.fill(root, (), [("", value) for value in values], self.index.fields(cls, path))
        return made
