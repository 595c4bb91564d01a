"""Objects: what a constructor or an aggregate puts into the fields. What is called on them is in methods.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from schema_patch.inference.domain.state import Item
from schema_patch.inference.domain.values import (
    ADDRESS,
    DATA,
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
    select,
    union,
)

from .calling import Calling
from .evaluator import Evaluator
from .frame import FunctionFrame, arguments
from .memory import TensorMemory
from .types import Types

EPILOGUE = ".epilogue.thread"  # of CUTLASS's arguments: what scales the product
BESIDE = re.compile(r"AuxStore|Reduction\b")


class Objects:
    """Evaluates the making of objects."""

    def __init__(
        self, frame: FunctionFrame, memory: TensorMemory, evaluator: Evaluator, types: Types, calling: Calling
    ) -> None:
        self.frame = frame
        self.state = frame.state
        self.memory = memory
        self.evaluator = evaluator
        self.types = types
        self.calling = calling
        evaluator.values |= {
            "initializer_list": self.braces,
            "compound_literal_expression": self.literal,
            "new_expression": self.new,
        }

    def braces(self, node: Node) -> Value:
        """`{a, b}`: an object of its own whose elements and fields are the values."""
        made = self.state.fill(self.state.new(LIST), list(self.items(node)))
        left = node.parent.child_by_field_name("left") if node.parent is not None else None
        if left is not None and self.frame.text(left).endswith(EPILOGUE) and not self.stores_beside():
            self.only_read(made, ())
        return made

    def listed(self, values: list[Value]) -> Value:
        """A container of these values; it is not told apart from them."""
        return self.state.fill(self.state.new(LIST), [("", value) for value in values]).union(*values)

    def copy_of_range(self, values: list[Value]) -> Value:
        """A vector of what stands between two pointers; of so many elements, where the first is a number."""
        if not all(any(o[1][-1:] == (DATA,) for o in value) for value in values):
            return self.listed([union(values)])  # each element is the second
        for value in values:
            self.state.read_data(value)
        return self.state.make(LIST)

    def items(self, node: Node | None) -> Iterator[Item]:
        """The designated field (or "") and the value of each element."""
        for child in arguments(node):
            if child.type == "initializer_pair":
                designator = child.child_by_field_name("designator")
                text = self.frame.text(designator) if designator else ""
                value = self.evaluator.value(child.child_by_field_name("value"))
                yield text[1:] if text.startswith(".") else "", value
            else:
                yield "", self.evaluator.value(child)

    def literal(self, node: Node) -> Value:
        """`T{a, b}`"""
        kind, inner = node.child_by_field_name("type"), node.child_by_field_name("value")
        cls = self.types.class_of(self.frame.text(kind)) if kind else ""
        made = self.construct(cls, inner, node)
        if kind is not None and inner is not None and not cls:
            self.aggregate(self.frame.text(kind), inner, made, node)
        return made

    def new(self, node: Node) -> Value:
        """`new T(a)`, `new (place) T(a)`"""
        kind = node.child_by_field_name("type")
        for place in arguments(node.child_by_field_name("placement")):
            self.memory.write_through(self.evaluator.value(place), node)
        cls = self.types.class_of(self.frame.text(kind)) if kind else ""
        return select(self.construct(cls, node.child_by_field_name("arguments"), node), ADDRESS)

    def construct(self, cls: str, inner: Node | None, node: Node) -> Value:
        """An object made from the arguments in parentheses or braces."""
        items = list(self.items(inner))
        if any(designator for designator, _ in items):
            root = self.state.new(OBJECT)
            self.state.classes[root] = cls
            return self.state.fill(root, items)
        return self.build(cls, [value for _, value in items], arguments(inner), node)

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
            self.calling.apply(makers, items, values, at(root, ADDRESS), node)
            return at(root)
        names = self.frame.index.fields(cls, self.frame.path)
        return self.state.fill(root, [("", value) for value in values], names)

    def aggregate(self, kind: str, inner: Node, made: Value, node: Node) -> None:
        """What the models say of an object of a library that is made from these elements: some lead to what a kernel
        writes."""
        name = kind.rstrip("&* ").split("<")[-1] if kind.endswith(">") else kind.split()[-1] if kind else ""
        for model in self.frame.models.aggregates:
            elements = arguments(inner)
            if not name.endswith(model.type) or not elements or model.first not in self.frame.text(elements[0]):
                continue
            value = self.evaluator.value(next(filter(None, (_element(inner, path) for path in model.writes)), None))
            self.memory.write_through(value, node)
            # A group of matrices: their addresses stand in a tensor, and other addresses perhaps beside them.
            kept = frozenset(o for o in self.state.select(value, DEREF) if o[1][-1:] == (DATA,) and not o[2])
            if len({root for root, _, _ in kept}) == 1:
                self.memory.write_through(kept, node)
            else:
                self.calling.escape(kept, node, "its address is stored in a tensor")
            part = _element(inner, model.more)
            plain = part is not None and part.type == "initializer_list" and not self.stores_beside()
            more = [element(int(number)) for number in model.more.split(".")]
            self.only_read(made, () if plain else more[:1] if part is None else more)

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
                    found = self.state.reachable(held)
                    self.state.heap[root, path] = constant(frozenset(o for o in found if isinstance(o[0], Parameter)))


def _element(node: Node, path: str) -> Node | None:
    """`1.0`: the first element of the second."""
    found: Node | None = node
    for number in map(int, path.split(".")):
        elements = arguments(found) if found is not None and found.type == "initializer_list" else []
        found = elements[number] if number < len(elements) else None
    return found
