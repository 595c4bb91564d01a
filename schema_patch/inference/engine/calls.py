"""How calls are written in C++: by name, of a value, of a method, through what launches. statements.py has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import children, part
from schema_patch.inference.domain.values import (
    ACCESSOR,
    ADDRESS,
    DEREF,
    NOTHING,
    THIS,
    Local,
    Script,
    Value,
    at,
    mutable,
    select,
    union,
)
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import read_parameters

from .applying import Given
from .calling import Calling
from .evaluator import Evaluator
from .frame import FunctionReader
from .lambdas import Lambdas
from .library import LibraryCalls, NamedCall
from .methods import Methods
from .objects import Objects
from .types import CASTS, Types

EXCHANGES = {"swap": 2, "exchange": 1}  # of the C++ library: how many of the arguments are assigned to


@dataclass(eq=False)
class Calls(FunctionReader):
    """Evaluates calls: of a function of the tree, of one that the models know, or of one of which nothing is known."""

    evaluator: Evaluator
    types: Types
    lambdas: Lambdas
    calling: Calling
    objects: Objects
    library: LibraryCalls
    methods: Methods

    def of_call_expression(self, node: Node) -> Value:
        function = node.child_by_field_name("function")
        items = children(node.child_by_field_name("arguments"))
        if function is None:
            return NOTHING
        if function.type == "field_expression":
            return self.methods.call(node, function, items)
        if function.type in ("identifier", "qualified_identifier", "template_function"):
            return self.named(node, function, items)
        values = self.evaluator.all(items)
        if function.type == "primitive_type":
            return union(values)
        called = self.evaluator.value(function)
        result = self.calling.call_value(called, Given(node, items, values))
        return result or (self.lambdas.results_of(called) if function.type == "lambda_expression" else NOTHING)

    def named(self, node: Node, function: Node, items: list[Node]) -> Value:
        """A call by name."""
        frame, names = self.frame, self.frame.names(function)
        if not names:
            return NOTHING
        name, qualifiers = names[-1], names[:-1]
        values = self.evaluator.all(items)
        if name in CASTS or name.endswith("_cast"):
            target = function.child_by_field_name("arguments") if function.type == "template_function" else None
            return self.evaluator.cast(values[0], target, items[0]) if values else NOTHING
        if name == "addressof" and len(items) == 1:
            return select(self.evaluator.places(items[0]), ADDRESS)
        if qualifiers and frame.types.get(qualifiers[-1]):
            qualifiers = tuple(frame.types[qualifiers[-1]].split("::"))
        call = NamedCall(node, items, values, name, qualifiers, function)
        if not qualifiers and (self.state.names.get(name) or isinstance(frame.constants.get(name), str)):
            return self.calling.call_value(self.evaluator.named(name), call)
        for rule in (
            self.accessor, self.script, self.in_tree, self.launched, self.autograd, self.exchanged, self.library.call,
            self.constructed,
        ):  # fmt: skip
            found = rule(call)
            if found is not None:
                return found
        return self.unknown(call)

    def accessor(self, call: NamedCall) -> Value | None:
        maker = self.models.accessors.get(call.name, len(call.values))
        return self.state.select(call.values[maker], ACCESSOR) if maker < len(call.values) else None

    def exchanged(self, call: NamedCall) -> Value | None:
        """`std::swap(a, b)`"""
        if call.name not in EXCHANGES or len(call.items) != 2:
            return None
        for item in call.items[: EXCHANGES[call.name]]:
            self.evaluator.assign(item, union(call.values), call.node)
        return NOTHING

    def constructed(self, call: NamedCall) -> Value | None:
        cls = self.types.class_of("::".join(self.frame.names(call.function)))
        return self.objects.construct(cls, part(call.node, "arguments"), call.node) if cls else None

    def in_tree(self, call: NamedCall) -> Value | None:
        """A function of the tree; None where the name is none."""
        if call.foreign:
            return None
        frame, items = self.frame, call.items
        count = -1 if any(item.type == "parameter_pack_expansion" for item in items) else len(items)
        found = frame.index.resolve(call.name, call.qualifiers, count, frame.function)
        if found:
            this = at(THIS, ADDRESS) if found[0].in_class and not call.qualifiers else NOTHING
            template = frame.template_arguments(call.function)
            return self.calling.apply(found, call, this, template)
        kernels = [
            function
            for name in dict.fromkeys(frame.index.stubs.get(call.name, ()))
            for function in frame.index.resolve(name.rpartition("::")[2], (), count - 1, frame.function)
        ]
        if kernels:  # `stub(device, …)` calls what REGISTER_DISPATCH gave it
            return self.calling.apply(kernels, call.behind(1), NOTHING)
        if frame.types.get(call.name) == "" and len(call.values) == 1:  # T(x) for a template's T
            return call.values[0]
        return None

    def launched(self, call: NamedCall) -> Value | None:
        """What runs what it is given, as `cudaLaunchKernel(f, …)`; None where it is no such function."""
        launch, values = self.models.launches.get(call.name), call.values
        if call.name == "apply" and call.qualifiers == ("std",) and len(values) == 2:
            return self.unpacked(values[0], self.state.elements(values[1]), call)
        if not launch or len(values) <= launch.callee:
            return None
        first = min(launch.first, len(values) - 1)
        if launch.packed:
            # Addresses without a type: that a variable is const says nothing of the kernel.
            packed = [mutable(self.state.select(v, DEREF)) for v in self.state.elements(values[first])]
            return self.unpacked(values[launch.callee], packed, call)
        if launch.callee >= 0:
            return self.calling.call_value(values[launch.callee], call.behind(first))
        kernels = self.kernels(self.frame.template_arguments(call.function))
        return self.calling.apply(kernels, call.behind(first), NOTHING) if kernels else None

    def unpacked(self, called: Value, parts: list[Value], call: NamedCall) -> Value | None:
        return self.calling.call_value(called, Given(call.node, [], parts, spots=parts)) if parts else None

    def kernels(self, texts: Sequence[str]) -> list[Function]:
        """The call operators of the classes that template arguments name, as in `launch<device_kernel<K>, K>`."""
        class_of = self.types.class_of
        classes = {class_of(text) or class_of(text.partition("<")[2].rstrip("> ")) for text in texts} - {""}
        return [f for cls in sorted(classes) for f in self.frame.methods(cls, "operator()", -1)]

    def autograd(self, call: NamedCall) -> Value | None:
        """`F::apply(…)` of a torch::autograd::Function: its forward, behind a context."""
        if call.name != "apply" or call.foreign or not call.qualifiers:
            return None
        forward = self.frame.methods(call.qualifiers[-1], "forward", len(call.items) + 1)
        if not forward:
            return None
        given = Given(call.node, [call.function, *call.items], [NOTHING, *call.values])
        return self.calling.apply(forward, given, NOTHING)

    def script(self, call: NamedCall) -> Value | None:
        """The kernel of a Python file that a call names: the file in its first arguments, the kernel in the last."""
        if len(call.items) < 2 or call.items[-1].type != "string_literal":
            return None
        *before, last = call.items
        name = self.frame.literal(last).strip('"')
        file = [text for item in before for text in self.literals(item)] if name.isidentifier() else []
        parts = tuple(part for text in file for part in text.split("/") if part)
        return at(Script(parts, name)) if parts and parts[-1].endswith(".py") else None

    def literals(self, node: Node, behind: tuple[Local, ...] = ()) -> Iterator[str]:
        """The strings that stand in an expression, in order, and in what its names were declared to be."""
        if node.type == "string_literal":
            yield self.frame.literal(node).strip('"')
        variable = self.frame.variable(node)
        meant = self.evaluator.meant.get(variable.root) if variable and variable.root not in behind else None
        if variable and meant:
            yield from self.literals(meant, (*behind, variable.root))
        for child in node.named_children:
            yield from self.literals(child, behind)

    def unknown(self, call: NamedCall) -> Value:
        """A function of which nothing is known: it may do anything with what it is given."""
        name, values, node, calling = call.name, call.values, call.node, self.calling
        if name in self.frame.body.template_names:
            calling.escape_all(call, f"passed to {name}, a template's parameter")
            return NOTHING
        if name[:1].isupper() and not name.isupper() and "_" not in name:  # a class of which nothing is known,
            if call.qualifiers and not call.foreign:  # or a function of a library, which may do anything
                calling.escape_all(call, f"passed to {name}, {self.frame.index.where(name)}")
            calling.run_functors(values, node)
            return union(values)
        declared = [read_parameters(p) for p in self.frame.index.prototypes.get(name, ())]
        fitting = [p for p in declared if len(p) == len(values)]
        where = self.frame.index.where(name, declared=bool(fitting))
        for number, (value, place) in enumerate(zip(values, self.evaluator.referred(call.items), strict=False)):
            if fitting and all(p[number].const and "*" in p[number].type for p in fitting):
                self.state.read_data(value)
                continue
            taken = [p[number].type for p in fitting]
            by_value = all("&" not in kind or "const" in kind for kind in taken) if taken else self.types.is_alias(name)
            calling.escape(value if by_value else value | place, node, f"passed to {name}, {where}")
        return self.lambdas.results_of(union(values))
