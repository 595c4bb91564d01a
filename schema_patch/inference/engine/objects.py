"""Objects: what a constructor or an aggregate puts into the fields. What is called on them is in methods.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import children, is_a, part
from schema_patch.inference.domain.state import Item
from schema_patch.inference.domain.values import (
    ADDRESS,
    DEREF,
    LIST,
    NOTHING,
    OBJECT,
    Local,
    Parameter,
    Selector,
    Value,
    at,
    constant,
    element,
    pointers,
    rooted,
    select,
    union,
)

from .applying import Given
from .calling import Calling
from .evaluator import Evaluator
from .frame import FunctionReader
from .memory import TensorMemory
from .types import Types

EPILOGUE = ".epilogue.thread"  # of CUTLASS's arguments: what scales the product
BESIDE = re.compile(r"AuxStore|Reduction\b")


@dataclass(eq=False)
class Objects(FunctionReader):
    """Evaluates the making of objects."""

    memory: TensorMemory
    evaluator: Evaluator
    types: Types
    calling: Calling

    def of_initializer_list(self, node: Node) -> Value:
        """`{a, b}`: an object of its own whose elements and fields are the values."""
        made = self.state.fill(self.state.new(LIST), list(self.items(node)))
        if self.frame.text(part(node.parent, "left")).endswith(EPILOGUE) and not self.stores_beside():
            self.only_read(made, ())
        return made

    def listed(self, values: list[Value]) -> Value:
        """A container of these values; it is not told apart from them."""
        return self.state.fill(self.state.new(LIST), [("", value) for value in values]).union(*values)

    def copy_of_range(self, values: list[Value]) -> Value:
        """A vector of what stands between two pointers; of so many elements, where the first is a number."""
        if not all(map(pointers, values)):
            return self.listed([union(values)])  # each element is the second
        for value in values:
            self.state.read_data(value)
        return self.state.make(LIST)

    def items(self, node: Node | None) -> Iterator[Item]:
        """The designated field (or "") and the value of each element."""
        for child in children(node):
            if child.type == "initializer_pair":
                text = self.frame.text(part(child, "designator"))
                yield text[1:] if text.startswith(".") else "", self.evaluator.value(part(child, "value"))
            else:
                yield "", self.evaluator.value(child)

    def of_compound_literal_expression(self, node: Node) -> Value:
        """`T{a, b}`"""
        kind, inner = self.frame.text(node.child_by_field_name("type")), node.child_by_field_name("value")
        cls = self.types.class_of(kind)
        made = self.construct(cls, inner, node)
        if not cls:
            self.aggregate(kind, inner, made, node)
        return made

    def of_new_expression(self, node: Node) -> Value:
        """`new T(a)`, `new (place) T(a)`"""
        for place in children(node.child_by_field_name("placement")):
            self.memory.write_through(self.evaluator.value(place), node)
        cls = self.types.class_of(self.frame.text(node.child_by_field_name("type")))
        return select(self.construct(cls, node.child_by_field_name("arguments"), node), ADDRESS)

    def construct(self, cls: str, inner: Node | None, node: Node) -> Value:
        """An object made from the arguments in parentheses or braces."""
        items = list(self.items(inner))
        if any(designator for designator, _ in items):
            root = self.state.new(OBJECT)
            self.state.classes[root] = cls
            return self.state.fill(root, items)
        return self.build(cls, [value for _, value in items], children(inner), node)

    def build(self, cls: str, values: list[Value], items: list[Node], node: Node) -> Value:
        """An object made from these values: by a constructor, or field by field."""
        root = self.state.new(OBJECT)
        if not cls:
            made = self.state.fill(root, [("", value) for value in values])
            self.calling.run_functors(values, node)
            return made.union(*values)
        self.state.classes[root] = cls
        makers = self.types.constructors(cls, len(values))
        if makers:
            self.calling.apply(makers, Given(node, items, values), at(root, ADDRESS))
            return at(root)
        names = self.frame.index.fields(cls, self.frame.path)
        return self.state.fill(root, [("", value) for value in values], names)

    def aggregate(self, kind: str, inner: Node | None, made: Value, node: Node) -> None:
        """What the models say of an object of a library that is made from these elements: some lead to what a kernel
        writes."""
        name = kind.rstrip("&* ").split("<")[-1] if kind.endswith(">") else kind.split()[-1] if kind else ""
        elements = children(inner)
        for model in self.models.aggregates:
            if not name.endswith(model.type) or not elements or model.first not in self.frame.text(elements[0]):
                continue
            value = self.evaluator.value(next(filter(None, (_element(inner, path) for path in model.writes)), None))
            self.memory.write_through(value, node)
            # A group of matrices: their addresses stand in a tensor, and other addresses perhaps beside them.
            kept = pointers(self.state.select(value, DEREF), to_write=True)
            if len({root for root, _, _ in kept}) == 1:
                self.memory.write_through(kept, node)
            else:
                self.calling.escape(kept, node, "its address is stored in a tensor")
            beside = _element(inner, model.more)
            plain = is_a(beside, "initializer_list") and not self.stores_beside()
            more = [element(int(number)) for number in model.more.split(".")]
            self.only_read(made, () if plain else more if beside else more[:1])

    def stores_beside(self) -> bool:
        """Whether the file names an epilogue that writes more than the product."""
        return BESIDE.search(self.frame.index.whole(self.frame.path)) is not None

    def only_read(self, objects: Value, but: Sequence[Selector]) -> None:
        """What objects in braces lead to is not written, but perhaps what is at this element of an element."""
        for root in {root for root, path, _ in objects if isinstance(root, Local) and root.kind == LIST and not path}:
            for path in self.state.inside.get(root, ()):
                spared = list(path[:1]) == list(but[:1])
                if spared and len(but) < 2:
                    continue
                held = self.state.heap.get((root, path), NOTHING)
                if spared:
                    self.only_read(held, but[1:])
                else:
                    self.state.heap[root, path] = constant(rooted(self.state.reachable(held), Parameter))


def _element(node: Node | None, path: str) -> Node | None:
    """`1.0`: the first element of the second."""
    for number in map(int, path.split(".")):
        elements = children(node) if is_a(node, "initializer_list") else []
        node = elements[number] if number < len(elements) else None
    return node
