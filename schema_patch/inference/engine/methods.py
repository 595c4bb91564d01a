"""What a call of a method does: of a class of the tree, of a tensor, of a container, of an object of unknown class.

Knows the names of ATen's and SYCL's methods through the models; free functions are in calls.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from schema_patch.inference.domain.values import NOTHING, Summary, Value, constant, either, select
from schema_patch.inference.index.index import takes
from schema_patch.inference.index.scan import Function

from .calls import TENSOR_LIKE
from .expressions import arguments
from .types import Types

GROWING = frozenset({"push_back", "emplace_back", "insert", "emplace", "push", "append"})
PARTS = frozenset("unbind chunk split split_with_sizes tensor_split".split())  # lists of views
BASIC = re.compile(r'(?:\w+::)*(?:Slice\b|None$|Ellipsis$)|"|-?\d+$')  # the only text is "..."
MANY = 100  # classes whose method of one name is looked into, where the object's class is not known


class Methods(Types):
    """Evaluates calls of methods."""

    def method(self, node: Node, function: Node, items: list[Node]) -> Value:
        base, field = function.child_by_field_name("argument"), function.child_by_field_name("field")
        names = self.names(field) if field is not None else ()
        if base is None or not names:
            return NOTHING
        name = names[-1]
        value = self.value(base)
        operator = function.child_by_field_name("operator")
        if operator is not None and self.text(operator) == "->":
            value = self.state.select(value, "*")
        values = [self.value(item) for item in items]
        if base.type == "this" and self.class_of(name):  # `Base(…)` among the initialisers
            found = self.constructors(self.class_of(name), len(items))
            if found:
                return self.apply(found, items, values, select(value, "&"), node)
        cls = self.class_of_value(base, value)
        if cls:
            found = self.index.methods(cls, name, len(items), self.body.function.path)
            if found:
                return self.apply(found, items, values, select(value, "&"), node)
        return self.modelled_method(
            name, base, value, items, values, node, "const" in self.text(function)[-60:].split("data_ptr")[-1]
        )

    def modelled_method(
        self, name: str, base: Node, value: Value, items: list[Node], values: list[Value], node: Node, const: bool
    ) -> Value:
        models, state = self.models, self.state
        # A local container is its own data; a variable that holds a tensor is not.
        local = frozenset(o for o in value if isinstance(o[0], str) and not state.heap.get(o[:2]))
        if name in models.constant_pointers or (name in models.pointers and const):
            return constant(state.select(value, "@")) | local
        if name in models.pointers:
            if name.startswith("mutable_"):  # it says that it writes; where no store is seen, reads do not refute it
                for origin in value:
                    state.effect("unknown", origin, self.here(node), "a pointer to write through is taken")
            return state.select(value, "@") | local
        if name in models.accessors:
            return state.select(value, "#")
        if name in models.perhaps:
            return state.select(value, "+" if name in models.dense else "~") | local
        if name in models.atomics:
            state.store(value, NOTHING, self.here(node))
            return NOTHING
        if name in models.stores:
            pointers = [v for v in values if any(isinstance(o[0], int) for o in v)]
            for pointer in pointers:
                self.write_through(pointer, node)
            if not pointers and name == "store":
                state.store(frozenset(o for o in value if o[1]), NOTHING, self.here(node))
            return NOTHING
        if name in models.method_writes and values:
            for number, item in enumerate(values):
                if number in models.method_writes[name]:
                    self.write_through(item, node)
                else:
                    state.read_data(item)
            return NOTHING
        if name in GROWING:
            for item in map(either, values):
                for place in self.places(base):
                    state.store(select([place], "*"), item, self.here(node))
            return NOTHING
        if name.endswith("_") and not name.endswith("__") and base.type != "this":
            if name not in models.not_in_place:
                self.write_data(value, node)
                self.state.read_data(o for item in values for o in item)
            return value
        if name in ("set_data", "swap"):
            for origin in filter(self.is_tensor, value.union(*values)):
                state.effect("unknown", origin, self.here(node), "it is given other data")
        if name in PARTS:
            root = state.new("list")
            state.add((root, ("*",)), value)
            return frozenset({(root, (), False)})
        if name in ("at", "front", "back"):
            return value | state.select(local, "*")
        if name in models.views:
            return value
        if name == "index" and len(items) == 1 and value:
            state.read_data(value)
            return value if all(map(self.basic, arguments(items[0]))) else state.select(value, "~")
        if name == "value_or":
            return value.union(*values)
        if name in models.makes and not self.class_of_expression(base):
            if name == "clone":
                state.read_data(value)
            return self.new_tensor(values)
        return self.other_method(name, base, value, items, values, node)

    def basic(self, item: Node) -> bool:
        """Whether an index is a number or a slice, with which `x.index({…})` is a view; with a tensor it is a copy."""
        variable = self.state.find(self.text(item)) if item.type == "identifier" else None
        return bool(variable and variable.scalar) or BASIC.match(self.text(item)) is not None

    def other_method(
        self, name: str, base: Node, value: Value, items: list[Node], values: list[Value], node: Node
    ) -> Value:
        """A method that neither a known class nor the models have."""
        field = self.state.select(value, f".{name}")
        callable_field = frozenset(o for o in field if isinstance(o[0], tuple))
        if callable_field:
            return self.call_value(callable_field, items, values, node)
        tensor = any(self.is_tensor(o) for o in value)
        variable = self.state.find(self.text(base)) if base.type == "identifier" else None
        if variable and variable.kind:
            tensor = bool(TENSOR_LIKE.search(variable.kind)) or (tensor and "auto" in variable.kind)
        if not tensor or name in ("call", "redispatch"):
            found = [f for f in self.index.functions.get(name, ()) if f.in_class and name not in self.models.reads]
            for origin in value if found else ():
                if isinstance(origin[0], int) and "@" not in origin[1] and "#" not in origin[1]:
                    self.later(origin, name, values, self.spots(items, values))
            fitting = [f for f in found if takes(f, len(items))]
            if len(fitting) == 1:
                return self.apply(fitting, items, values, select(value, "&"), node)
            if 1 < len(fitting) <= MANY:
                self.agree(fitting, values, node, name)
                return NOTHING
            if name not in self.models.reads and name not in self.models.metadata:
                self.lose(value, node)
            for item in values:
                if name not in self.models.reads:
                    self.escape(item, node, f"passed to the method {name}, which is not resolved")
        if name not in self.models.metadata:
            self.state.read_data(value)
            self.state.read_data(o for item in values for o in item)
        self.run_functors(values, node)
        return self.lambda_results(values)

    def agree(self, functions: Sequence[Function], values: list[Value], node: Node, name: str) -> None:
        """A method that several classes have: what all of them write is written, what some may write is unknown."""
        summaries = [self.summary_of(function) for function in functions]
        for number, value in enumerate(values):
            # One that does nothing at all with the argument was not understood, and has no say.
            seen = [set(_done(summary, number)) for summary in summaries]
            seen = [found for found in seen if found]
            if seen and all("write" in found for found in seen):
                self.write_through(value, node)
            elif not seen or any(found & {"write", "unknown"} for found in seen):
                self.escape(value, node, f"passed to the method {name}, which is not resolved")
            else:
                self.state.read_data(value)


def _done(summary: Summary, number: int) -> Iterator[str]:
    """What a function does with an argument."""
    for kind, root, path in summary.effects:
        if root == number and (kind == "unknown" or "*" in path):
            yield kind
    for root, _ in summary.reads:
        if root == number:
            yield "read"
