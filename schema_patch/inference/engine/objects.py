"""Objects: which class of the tree a type names, and what a constructor or an aggregate puts into the fields.

Knows how objects are made in C++; what is called on them is in methods.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from schema_patch.inference.domain.values import NOTHING, Value, select

from .expressions import arguments
from .methods import Methods

NAME = re.compile(r"[A-Za-z_]\w*")
QUALIFIER = re.compile(r"(\w+)\s*::")
SMART = re.compile(r"\b(?:unique_ptr|shared_ptr)\s*<(.*)>")


@lru_cache(maxsize=65536)
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
        smart = SMART.search(text)
        name = bare(smart[1] if smart else text)
        for _ in range(5):
            if name in self.index.classes and name not in self.types:
                return name if self.nested(name, QUALIFIER.findall(text.split("<")[0])) else ""
            if self.types.get(name) == "":
                return ""
            target = self.types.get(name) or self.index.aliases.get(name)
            if not target or target == name:
                return ""
            name = target.rpartition("::")[2]
        return ""

    def nested(self, name: str, qualifiers: list[str]) -> bool:
        """Whether `Q::Name` may be one of the tree's classes: those that stand within other classes have to match."""
        classes = self.index.classes
        if not qualifiers or any(not c.scope or c.scope[-1] not in classes for c in classes[name]):
            return True
        outer = self.class_of(qualifiers[-1]) if qualifiers[-1] != name else ""
        family = self.index.family((outer,)) if outer else set(qualifiers[-1:])
        return any(c.scope[-1] in family for c in classes[name])

    def aggregate(self, kind: str, inner: Node, node: Node) -> None:
        """What the models say of an object of a library that is made from these elements: some lead to what a kernel
        writes."""
        name = kind.rstrip("&* ").split("<")[-1] if kind.endswith(">") else kind.split()[-1] if kind else ""
        for model in self.models.aggregates:
            elements = arguments(inner)
            if not name.endswith(model.type) or not elements or model.first not in self.text(elements[0]):
                continue
            for path in model.writes:
                found: Node | None = inner
                for number in map(int, path.split(".")):
                    elements = arguments(found) if found is not None and found.type == "initializer_list" else []
                    found = elements[number] if number < len(elements) else None
                value = self.value(found)
                self.write_through(value, node)
                # A group of matrices: their addresses stand in a tensor, and other addresses perhaps beside them.
                kept = frozenset(o for o in self.state.select(value, "*") if o[1][-1:] == ("@",))
                if len({root for root, _, _ in kept}) == 1:
                    self.write_through(kept, node)
                else:
                    self.escape(kept, node, "its address is stored in a tensor")

    def of_initializer_list(self, node: Node) -> Value:
        """`{a, b}`: an object of its own whose elements and fields are the values."""
        root = self.state.new("list")
        self.fill(root, (), list(self.items(node)))
        return frozenset({(root, (), False)})

    def items(self, node: Node) -> Iterator[tuple[str, Value]]:
        """The designator (or "") and value of each element."""
        for child in arguments(node):
            if child.type == "initializer_pair":
                designator, inner = child.child_by_field_name("designator"), child.child_by_field_name("value")
                yield self.text(designator) if designator else "", self.value(inner)
            else:
                yield "", self.value(child)

    def fill(
        self, root: str, path: tuple[str, ...], items: list[tuple[str, Value]], names: tuple[str, ...] = ()
    ) -> None:
        for number, (designator, value) in enumerate(items):
            self.state.add((root, (*path, "*")), value)
            if designator.startswith("."):
                self.state.add((root, (*path, designator)), value)
                continue
            self.state.heap.setdefault((root, (*path, f".{number}")), NOTHING)
            self.state.add((root, (*path, f".{number}")), value)
            if number < len(names):
                self.state.add((root, (*path, f".{names[number]}")), value)

    def of_compound_literal_expression(self, node: Node) -> Value:
        kind = node.child_by_field_name("type")
        inner = node.child_by_field_name("value")
        cls = self.class_of(self.text(kind)) if kind else ""
        if kind is not None and inner is not None and not cls:
            self.aggregate(self.text(kind), inner, node)
        return self.construct(cls, inner, node)

    def of_new_expression(self, node: Node) -> Value:
        kind = node.child_by_field_name("type")
        for place in arguments(node.child_by_field_name("placement")):
            self.write_through(self.value(place), node)
        made = self.construct(
            self.class_of(self.text(kind)) if kind else "", node.child_by_field_name("arguments"), node
        )
        return select(made, "&")

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
        makers = self.constructors(cls, len(values))
        if makers:
            self.apply(makers, items, values, select(made, "&"), node)
        else:
            self.fill(root, (), [("", value) for value in values], self.index.fields(cls, path))
        return made
