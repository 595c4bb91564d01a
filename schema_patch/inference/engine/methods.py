"""What a call of a method does: of a class of the tree, of a tensor, of a container, of an object of unknown class.

Knows the names of ATen's and SYCL's methods through the models; free functions are in calls.py and library.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import children
from schema_patch.inference.domain.summary import TAKEN, UNKNOWN, WRITE, Summary
from schema_patch.inference.domain.values import (
    ACCESSOR,
    ADDRESS,
    DATA,
    DENSE,
    DEREF,
    LIST,
    NOTHING,
    PAIR,
    PERHAPS,
    Callee,
    Closure,
    Local,
    Parameter,
    Value,
    at,
    constant,
    either,
    field_of,
    in_data,
    is_data,
    pointers,
    rooted,
    select,
    union,
)
from schema_patch.inference.index.index import takes
from schema_patch.inference.index.scan import Function
from schema_patch.schemas import aten

from .applying import Given
from .calling import Calling
from .evaluator import Evaluator
from .frame import MOST_OVERLOADS, TENSOR_LIKE, FunctionReader
from .lambdas import Lambdas
from .memory import TensorMemory
from .types import Types

GROWING = frozenset("push_back emplace_back push_front emplace_front insert emplace push append".split())
OPTIONAL = re.compile(r"\boptional\s*<")  # of a tensor: what is asked of it is asked of the tensor
PARTS = frozenset(  # lists of views
    "unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split "
    "unsafe_split_with_sizes".split()
)
BASIC = re.compile(r'(?:\w+::)*(?:Slice\b|None$|Ellipsis$)|"|-?\d+$')  # the only text is "..."
MANY = 100  # classes whose method of one name is looked into, where the object's class is not known


@dataclass(eq=False)
class Method(Given):
    """A call of a method: of which object, as written and as a value."""

    name: str
    base: Node
    value: Value
    const: bool  # `x.data_ptr<const T>()`
    local: Value  # the local containers among the objects: each is its own data, as a variable of a tensor is not


@dataclass(eq=False)
class Methods(FunctionReader):
    """Evaluates calls of methods."""

    memory: TensorMemory
    evaluator: Evaluator
    types: Types
    lambdas: Lambdas
    calling: Calling

    def call(self, node: Node, function: Node, items: list[Node]) -> Value:
        """`base.method(items)`"""
        base, names = function.child_by_field_name("argument"), self.frame.names(function.child_by_field_name("field"))
        if base is None or not names:
            return NOTHING
        name, value = names[-1], self.evaluator.object(function)
        values = self.evaluator.all(items)
        if not name:  # `(x.*(&T::f))()`
            self.calling.escape_all(Given(node, items, [*values, value]), "called through a pointer to a member")
            return NOTHING
        const = "const" in self.frame.text(function)[-60:].split("data_ptr")[-1]
        local = frozenset(o for o in value if isinstance(o[0], Local) and not self.state.heap.get(o[:2]))
        call = Method(node, items, values, name, base, value, const, local)
        found = self.in_tree(call)
        if found:
            return self.calling.apply(found, call, select(value, ADDRESS))
        for rule in (self.dispatched, self.pointers, self.stores, self.in_place, self.parts):
            result = rule(call)
            if result is not None:
                return result
        return self.other(call)

    def dispatched(self, call: Method) -> Value | None:
        """`Dispatcher::singleton().findSchemaOrThrow("ns::op", "").typed<…>().call(…)`: the operator's kernels."""
        if call.name in ("findSchemaOrThrow", "findSchema") and call.items:
            functions = self.frame.kernels(self.frame.literal(call.items[0]).strip('"'))
            return frozenset((Callee(function, ()), (), False) for function in functions[:MOST_OVERLOADS]) or None
        kernels = rooted(call.value, Callee)
        if kernels and call.name == "typed":
            return kernels
        if kernels and call.name in ("call", "redispatch"):
            return self.calling.call_value(kernels, call.behind(1 if call.name == "redispatch" else 0))  # the keys
        return None

    def in_tree(self, call: Method) -> list[Function]:
        """The methods of the tree that this is a call of, by the class of the object."""
        made = self.types.class_of(call.name) if call.base.type == "this" else ""  # `Base(…)` among the initialisers
        found = self.types.constructors(made, len(call.items)) if made else []
        cls = "" if found else self.types.class_of_value(call.base, call.value)
        return self.frame.methods(cls, call.name, len(call.items)) if cls else found

    def pointers(self, call: Method) -> Value | None:
        """Pointers to the data of a tensor, accessors, and what perhaps is a copy."""
        models, state, name, value = self.models, self.state, call.name, call.value
        if name in models.names.constant_pointers or (name in models.names.pointers and call.const):
            return constant(state.select(value, DATA)) | call.local
        if name in models.names.pointers:
            if name.startswith("mutable_"):  # it says that it writes; reads by other ways do not refute it
                for origin in select(value, DATA):
                    state.effect(TAKEN, origin, self.frame.here(call.node))
            return state.select(value, DATA) | call.local
        if name in models.names.accessors:
            return state.select(value, ACCESSOR)
        if name in models.names.dense or name in models.names.perhaps:
            return state.select(value, DENSE if name in models.names.dense else PERHAPS) | call.local
        return None

    def stores(self, call: Method) -> Value | None:
        """Methods that store through the object or through a pointer that they are given, and those of containers."""
        models, state, name, node, values = self.models, self.state, call.name, call.node, call.values
        here = self.frame.here(node)
        if name in models.names.atomics:
            state.store(call.value, NOTHING, here)
        elif name in models.names.stores:
            targets = [value for value in values if rooted(value, Parameter)]
            for target in targets:
                self.memory.write_through(target, node)
            if not targets and name == "store":
                state.store(frozenset(o for o in call.value if o[1]), NOTHING, here)
        elif name in models.methods and values:
            self.memory.write_some(values, set(models.methods[name]), node)
        elif name in models.names.products and len(values) > 3:
            self.product(call)
        elif name in GROWING:
            for item in map(either, values):
                state.store(select(self.evaluator.places(call.base), DEREF), item, here)
        else:
            return None
        return NOTHING

    def product(self, call: Method) -> None:
        """The operands of a product of matrices: pointers, lists of them, or a list of lists."""
        operands = [pointers(self.state.reachable(value)) for value in call.values]
        listed = any(isinstance(o[0], Local) and not o[1] for o in call.values[2])
        if listed or not operands[3]:
            self.memory.write_some(operands, {3 if listed else 2}, call.node)
        else:
            self.calling.escape_all(call, f"passed to the method {call.name}, which is not resolved")

    def in_place(self, call: Method) -> Value | None:
        """`x.add_(y)`, and what gives a tensor other data."""
        name, value = call.name, call.value
        if name in aten.REPLACES:
            for origin in self.memory.tensors(value if name.endswith("_") else value.union(*call.values)):
                self.state.effect(UNKNOWN, origin, self.frame.here(call.node), "it is given other data")
        if name.endswith("_") and not name.endswith("__") and call.base.type != "this":
            if name not in self.models.names.not_in_place:
                self.memory.write_data(value, call.node)
                self.state.read_data(union(call.values))
            return value
        return None

    def parts(self, call: Method) -> Value | None:
        """Views and elements of the object, and tensors that are made from it."""
        models, state, name, value = self.models, self.state, call.name, call.value
        if name in PARTS or name == "expect_contiguous":  # which gives what leads to the tensor, or to a copy
            root = state.new(LIST)
            state.add((root, (DEREF,)), value if name in PARTS else state.select(value, PERHAPS))
            return at(root)
        if name in ("at", "front", "back"):
            lists = frozenset(o for o in value if not in_data(o[1])) - self.memory.tensors(value)
            return (value - lists) | call.local | state.select(lists, DEREF)
        if name == "find" and not self.memory.tensors(value):
            return value  # an iterator, as begin() is
        if name in PAIR and call.items:  # a pair whose second is a function
            return self.calling.call_value(state.select(value, PAIR[name]), call)
        if name in models.names.views:
            return value
        if name == "index" and len(call.items) == 1 and value:
            state.read_data(value)
            return value if all(map(self.basic, children(call.items[0]))) else state.select(value, PERHAPS)
        if name == "value_or":
            return value.union(*call.values)
        if name in models.names.makes and not self.types.class_of_expression(call.base):
            if name == "clone":
                state.read_data(value)
            return self.memory.new_tensor(call.values)
        return None

    def basic(self, item: Node) -> bool:
        """Whether an index is a number or a slice, with which `x.index({…})` is a view; with a tensor it is a copy."""
        variable = self.frame.variable(item)
        return bool(variable and variable.scalar) or BASIC.match(self.frame.text(item)) is not None

    def other(self, call: Method) -> Value:
        """A method that neither a known class nor the models have."""
        name, value, values, node = call.name, call.value, call.values, call.node
        called = self.state.select(value, field_of(name))
        called = self.calling.among(called) | rooted(called, Callee | Closure)
        if called:  # a field that holds a function
            return self.calling.call_value(called, call)
        known = name in self.models.names.reads or name in self.models.names.loads
        if name in ("call", "redispatch") or not self.on_tensor(call):
            found = [] if known else [f for f in self.frame.index.functions.get(name, ()) if f.in_class]
            for origin in value if found else ():
                if isinstance(origin[0], Parameter) and not in_data(origin[1]):
                    self.calling.later(origin, name, call)
            fitting = [f for f in found if takes(f, len(call.items))]
            if len(fitting) == 1:
                return self.calling.apply(fitting, call, select(value, ADDRESS))
            if 1 < len(fitting) <= MANY:
                self.agree(fitting, call)
                return NOTHING
            if not known and name not in self.models.names.metadata:
                self.memory.lose(value, node)
                held = self.memory.tensors(self.state.reachable(value - self.memory.tensors(value)))
                self.calling.escape(held | pointers(value), node, f"in an object whose {name} is not resolved")
            if not known:
                elements = select((o for o in value if in_data(o[1]) and is_data(o[1])), ADDRESS)
                self.calling.escape(elements, node, f"an element whose method {name} is not resolved")
                self.calling.escape_all(call, f"passed to the method {name}, which is not resolved")
        if name not in self.models.names.metadata:
            self.state.read_data(value.union(*values))
        self.calling.run_functors(values, node)
        return self.lambdas.results_of(union(values))

    def on_tensor(self, call: Method) -> bool:
        """Whether the object is a tensor, by what is declared."""
        tensor = bool(self.memory.tensors(call.value))
        variable = self.frame.variable(call.base)
        if variable and variable.kind:
            outer = OPTIONAL.sub("", variable.kind).split("<")[0]
            return bool(TENSOR_LIKE.search(outer)) or (tensor and "auto" in variable.kind)
        return tensor

    def agree(self, functions: Sequence[Function], call: Method) -> None:
        """A method that several classes have: what all of them write is written, what some may write is unknown."""
        summaries = [self.frame.summary_of(function, ()) for function in functions]
        for number, value in enumerate(call.values):
            # One that does nothing at all with the argument was not understood, and has no say.
            seen = [set(_done(summary, number)) for summary in summaries]
            seen = [found for found in seen if found]
            if seen and all(WRITE in found for found in seen):
                self.memory.write_through(value, call.node)
            elif not seen or any(found & {WRITE, UNKNOWN} for found in seen):
                self.calling.escape(value, call.node, f"passed to the method {call.name}, which is not resolved")
            else:
                self.state.read_data(value)


def _done(summary: Summary, number: int) -> Iterator[str]:
    """What a function does with an argument."""
    for kind, root, path in summary.effects:
        if root.number == number and (kind == UNKNOWN or DEREF in path):
            yield kind
    if any(root.number == number for root, _, _ in summary.reads):
        yield "read"
