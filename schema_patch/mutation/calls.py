"""What a call does: to a function of the tree, to one that the models know, or to one of which nothing is known.

Knows how calls are written in C++ and what ATen's names promise; statements are in flow.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from .expressions import CASTS, Expressions, arguments
from .scan import Function
from .syntax import Parameter, read_parameters
from .values import NOTHING, PACK, THIS, Chain, Origin, Path, Root, Summary, Value, constant, loaded, select

ATEN = frozenset({"at", "torch"})
FOREIGN = frozenset("std at torch c10 sycl cuda cub thrust cute cutlass oneapi esimd".split())
CONTAINERS = frozenset("vector array tuple pair optional initializer_list map make_tuple make_pair tie ArrayRef TensorList to_array".split())
GROWING = frozenset({"push_back", "emplace_back", "insert", "emplace", "push", "append"})
TENSOR_LIKE = re.compile(r"\b(?:Tensor|TensorBase|TensorList|TensorOptions)\b")
Types = Callable[[Function], Sequence[Parameter]]


def takes_lambda(values: Sequence[Value]) -> bool:
    return any(isinstance(o[0], tuple) and o[0][0] == "lambda" for value in values for o in value)


class Calls(Expressions):
    """Evaluates calls."""

    def summary_of(self, function: Function) -> Summary:
        raise NotImplementedError

    def parameters_of(self, function: Function) -> Sequence[Parameter]:
        """The parameters of a function as its header declares them."""
        return read_parameters(self.index.text(function.path).masked[slice(*function.parameters)])

    def of_call_expression(self, node: Node) -> Value:
        function, inner = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None:
            return NOTHING
        items = arguments(inner)
        if function.type == "field_expression":
            return self.method(node, function, items)
        if function.type in ("identifier", "qualified_identifier", "template_function"):
            return self.named_call(node, function, items)
        values = [self.value(item) for item in items]
        if function.type == "primitive_type":
            return frozenset().union(*values) if values else NOTHING
        if function.type == "lambda_expression":
            called = self.value(function)
            return self.call_value(called, items, values, node) or self.results_of(called)
        return self.call_value(self.value(function), items, values, node)

    def results_of(self, value: Value) -> Value:
        """What the lambdas among these values return."""
        heap = self.state.heap
        return frozenset(o for v in value for o in heap.get((v[0], (".result",)), ()))

    def named_call(self, node: Node, function: Node, items: list[Node]) -> Value:
        names = self.names(function)
        if not names:
            return NOTHING
        name, qualifiers = names[-1], names[:-1]
        values = [self.value(item) for item in items]
        if name in CASTS or name.endswith("_cast"):
            inside = function.child_by_field_name("arguments") if function.type == "template_function" else None
            return self.cast(values[0], inside) if values else NOTHING
        if not qualifiers:
            variable = self.state.find(name)
            if variable:
                return self.call_value(self.named(name), items, values, node)
        foreign = bool(qualifiers) and qualifiers[0] in FOREIGN
        if not foreign:
            count = -1 if any(item.type == "parameter_pack_expansion" for item in items) else len(items)
            found = self.index.resolve(name, qualifiers, count, self.body.function)
            if found:
                this: Value = NOTHING
                if found[0].in_class and not qualifiers:
                    this = frozenset({(THIS, ("&",), False)})
                return self.apply(found, items, values, this, node)
            if self.types.get(name) == "" and len(values) == 1:  # T(x) for a template's T
                return values[0]
        launch = self.models.launches.get(name)
        if launch and len(values) > launch.callee:
            rest = slice(launch.first, None)
            return self.call_value(values[launch.callee], items[rest], values[rest], node)
        if name == "swap" and len(items) == 2:
            for item in items:
                self.assign(item, values[0] | values[1], node)
            return NOTHING
        modelled = self.modelled(name, qualifiers, items, values, node)
        if modelled is not None:
            return modelled
        cls = self.class_of("::".join(names))
        if cls:
            return self.construct(cls, node.child_by_field_name("arguments"), node)
        return self.unknown_call(name, items, values, node)

    def modelled(
        self, name: str, qualifiers: tuple[str, ...], items: list[Node], values: list[Value], node: Node
    ) -> Value | None:
        """What ATen's naming or the model file says of a function; None where neither knows it."""
        models = self.models
        self.run_functors(values, node)
        if name == "from_blob" and values:
            root = self.state.new("blob")
            self.state.add((root, ("@",)), values[0])
            return frozenset({(root, (), False)})
        if ATEN & set(qualifiers) and items:
            written = self.aten(name, values)
            if written is not None:
                self.write_data(values[written], node)
                return values[written]
        written_to = models.writes.get(name)
        if written_to is not None:
            for number in written_to:
                if -len(values) <= number < len(values):
                    self.write_through(values[number], node)
            return NOTHING
        if name in CONTAINERS:
            root = self.state.new("list")
            self.fill(root, (), [("", value) for value in values])
            return frozenset({(root, (), False)}).union(*values)
        if name in models.aliases:
            return frozenset(o for number in models.aliases[name] if number < len(values) for o in values[number])
        if name in models.reads:
            self.state.read(o for value in values for o in value if o[1][-1:] == ("@",))
            return self.lambda_results(values)
        if ATEN & set(qualifiers):
            self.state.read(frozenset().union(*values) if values else ())
            if name in models.views and values:
                return values[0]
            if name in models.perhaps and values:
                return self.state.select(values[0], "~")
            return self.lambda_results(values)
        return None

    def lambda_results(self, values: list[Value]) -> Value:
        return frozenset().union(*(self.results_of(value) for value in values)) if values else NOTHING

    def aten(self, name: str, values: list[Value]) -> int | None:
        """Which argument an ATen function writes by its name, if any."""
        if name.endswith("_outf"):
            return len(values) - 1
        if name.endswith("_out") or (name.endswith("_") and name not in self.models.not_in_place):
            return 0
        return None

    def write_data(self, value: Value, node: Node) -> None:
        """The data of these tensors is written."""
        for root, path, const in value:
            if isinstance(root, int) and "@" not in path and "#" not in path:
                self.state.effect("write", (root, (*path, "@", "*"), const), self.here(node))

    def write_through(self, value: Value, node: Node) -> None:
        """What these pointers lead to is written."""
        self.state.store(select(value, "*"), NOTHING, self.here(node))

    def unknown_call(self, name: str, items: list[Node], values: list[Value], node: Node) -> Value:
        if name[:1].isupper() and not name.isupper() and "_" not in name:  # a class of which nothing is known
            self.run_functors(values, node)
            return frozenset().union(*values) if values else NOTHING
        declared = [read_parameters(p) for p in self.index.prototypes.get(name, ())]
        fitting = [p for p in declared if len(p) == len(values)]
        for number, value in enumerate(values):
            if fitting and all(p[number].const and "*" in p[number].type for p in fitting):
                self.state.read(value)
                continue
            what = "declared, but not defined in this tree" if fitting else "not in this tree"
            self.escape(value, node, f"passed to {name}, {what}")
        return self.lambda_results(values)

    def escape(self, value: Value, node: Node, reason: str) -> None:
        """Something that is not seen may write what these values lead to, or call what they are."""
        value = self.run_functors([value], node)
        for origin in self.state.reachable(value):
            if isinstance(origin[0], int) and not origin[2] and not loaded(origin[1]):
                self.state.effect("unknown", origin, self.here(node), reason)
            else:
                self.state.read([origin])

    def run_functors(self, values: Sequence[Value], node: Node) -> Value:
        """Objects with a call operator that are handed over are called by whoever takes them; gives the other values."""
        rest: set[Origin] = set()
        for origin in frozenset().union(*values) if values else ():
            cls = self.state.classes.get(origin[0]) if not origin[1] else None
            found = self.index.methods(cls, "operator()", -1, self.body.function.path) if cls else []
            if found:
                self.apply(found, [], [], frozenset({(origin[0], ("&",), False)}), node)
            else:
                rest.add(origin)
        return frozenset(rest)

    def call_value(
        self,
        called: Value,
        items: list[Node],
        values: list[Value],
        node: Node,
        spots: list[Value] | None = None,
    ) -> Value:
        """A call of what these values are: functions, lambdas, objects with a call operator, parameters."""
        result: set[Origin] = set()
        done = False
        for origin in called:
            root, path, _ = origin
            if isinstance(root, tuple) and root[0] == "fn":
                result |= self.apply([root[1]], items, values, NOTHING, node, spots)
                done = True
            elif isinstance(root, tuple):
                if any(values) and root[1] in self.lambdas:
                    result |= self.run_lambda(self.lambdas[root[1]], values, spots or self.spots(items, values))
                result |= self.results_of(frozenset({origin}))
                done = True
            elif isinstance(root, str) and not path and root in self.state.classes:
                cls = self.state.classes[root]
                found = self.index.methods(cls, "operator()", len(values), self.body.function.path)
                if found:
                    this = frozenset({(root, ("&",), False)})
                    result |= self.apply(found, items, values, this, node, spots)
                    done = True
            elif isinstance(root, int) and "@" not in path:
                self.state.summary.calls[origin, tuple(values), tuple(spots or self.spots(items, values))] = None
                done = True
        if not done:
            for value in values:
                self.escape(value, node, f"passed to {self.text(node).split('(')[0][:40].strip()}, which is not resolved")
        return frozenset(result)

    def apply(
        self,
        functions: Sequence[Function],
        items: list[Node],
        values: list[Value],
        this: Value,
        node: Node,
        spots: list[Value] | None = None,
    ) -> Value:
        """The effects of calling any of these functions; `spots` are the places of the arguments."""
        result: set[Origin] = set()
        places = self.spots(items, values) if spots is None else spots
        for function in fitting(functions, values, self.parameters_of) if len(functions) > 1 else functions:
            summary = self.summary_of(function)
            result |= Call(self, summary, values, places, this, node).run()
        return frozenset(result)

    def spots(self, items: list[Node], values: list[Value]) -> list[Value]:
        """The places that the arguments denote, as a reference parameter sees them."""
        pairs = zip(items, values, strict=False)
        places = [value if item.type == "call_expression" else self.places(item) for item, value in pairs]
        return places + values[len(places) :]

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
        cls = self.class_of_value(base, value)
        if cls:
            found = self.index.methods(cls, name, len(items), self.body.function.path)
            if found:
                return self.apply(found, items, values, select(value, "&"), node)
        return self.modelled_method(name, base, value, items, values, node, "const" in self.text(function)[-60:].split("data_ptr")[-1])

    def class_of_value(self, base: Node, value: Value) -> str:
        if base.type == "this":
            return next((part for part in reversed(self.body.function.scope)), "")
        if base.type == "identifier":
            variable = self.state.find(self.text(base))
            if variable and variable.cls:
                return variable.cls
        return next((self.state.classes[o[0]] for o in value if not o[1] and o[0] in self.state.classes), "")

    def modelled_method(
        self, name: str, base: Node, value: Value, items: list[Node], values: list[Value], node: Node, const: bool
    ) -> Value:
        models, state = self.models, self.state
        local = frozenset(o for o in value if isinstance(o[0], str))
        if name in models.constant_pointers or (name in models.pointers and const):
            return constant(state.select(value, "@")) | local
        if name in models.pointers:
            return state.select(value, "@") | local
        if name in models.accessors:
            return state.select(value, "#")
        if name in models.perhaps:
            return state.select(value, "~") | local
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
            for number in models.method_writes[name]:
                if number < len(values):
                    self.write_through(values[number], node)
            return NOTHING
        if name in GROWING:
            for item in values:
                for place in self.places(base):
                    state.store(select([place], "*"), item, self.here(node))
            return NOTHING
        if name.endswith("_") and not name.endswith("__") and base.type != "this":
            if name not in models.not_in_place:
                self.write_data(value, node)
                self.state.read(o for item in values for o in item)
            return value
        if name in models.views:
            return value
        return self.other_method(name, base, value, items, values, node)

    def other_method(
        self, name: str, base: Node, value: Value, items: list[Node], values: list[Value], node: Node
    ) -> Value:
        """A method that neither a known class nor the models have."""
        field = self.state.select(value, f".{name}")
        callable_field = frozenset(o for o in field if isinstance(o[0], tuple))
        if callable_field:
            return self.call_value(callable_field, items, values, node)
        tensor = any(isinstance(o[0], int) and "@" not in o[1] and "*" not in o[1][:1] for o in value)
        variable = self.state.find(self.text(base)) if base.type == "identifier" else None
        if variable and variable.kind:
            tensor = bool(TENSOR_LIKE.search(variable.kind)) or (tensor and "auto" in variable.kind)
        if not tensor or name in ("call", "redispatch"):
            found = [f for f in self.index.functions.get(name, ()) if f.in_class and name not in self.models.reads]
            fitting = [f for f in found if f.arity[0] <= len(items) and (f.arity[1] < 0 or len(items) <= f.arity[1])]
            if 0 < len(fitting) <= 4:
                return self.apply(fitting, items, values, select(value, "&"), node)
            for item in values:
                if name not in self.models.reads:
                    self.escape(item, node, f"passed to the method {name}, which is not resolved")
        if name not in self.models.metadata:
            self.state.read(value)
            self.state.read(o for item in values for o in item)
        self.run_functors(values, node)
        return self.lambda_results(values)


def fitting(functions: Sequence[Function], values: list[Value], types: Types) -> list[Function]:
    """The overloads whose pointers can take these arguments: what is const does not become what can be written."""
    found = []
    for function in functions:
        parameters = types(function)
        pairs = zip(parameters, values, strict=False)
        if not any("*" in p.type and not p.const and v and all(o[2] for o in v if o[1] or isinstance(o[0], int)) for p, v in pairs):
            found.append(function)
    return found or list(functions)


class Call:
    """One summary put to use at one call."""

    def __init__(
        self, calls: Calls, summary: Summary, values: list[Value], places: list[Value], this: Value, node: Node
    ) -> None:
        self.calls = calls
        self.state = calls.state
        self.summary = summary
        self.values = values
        self.spots = places
        self.this = this
        self.node = node
        self.chain: Chain = calls.here(node)
        self.made: str | None = None

    def base(self, root: Root, path: Path) -> Value:
        """The caller's values for a parameter; its places where nothing is dereferenced."""
        if root == THIS:
            return self.this
        if not isinstance(root, int):
            return NOTHING
        source = self.values if ("*" in path or "@" in path or "#" in path) else self.spots
        if path[:1] == (PACK,):
            return frozenset().union(*source[root:]) if root < len(source) else NOTHING
        return source[root] if root < len(source) else NOTHING

    def follow(self, root: Root, path: Path) -> Value:
        """The caller's places for a path of the callee."""
        value = self.base(root, path)
        if root == THIS and path[:1] != ("&",):  # the value of `this` is an address, a path starts at the object
            value = self.state.select(value, "*")
        elif root == THIS:
            path = path[1:]
        path = path[1:] if path[:1] == (PACK,) else path
        for selector in path[:-1]:
            value = self.state.select(value, selector)
        return select(value, path[-1]) if path else value

    def spread(self, values: Sequence[Value]) -> list[Value]:
        """Arguments with a parameter pack among them as the arguments that stand for it here."""
        result: list[Value] = []
        for value in values:
            packs = [o for o in value if isinstance(o[0], int) and o[1] == (PACK,)]
            if packs:
                count = len(self.values)
                result += [frozenset({(number, (), False)}) for number in range(packs[0][0], count)]
            else:
                result.append(value)
        return result

    def translate(self, value: Value) -> Value:
        result: set[Origin] = set()
        for root, path, const in value:
            if isinstance(root, tuple):
                result.add((root, path, const))
                continue
            found = self.state.load(self.follow(root, path) if path else self.whole(root))
            result |= constant(found) if const else found
        return frozenset(result)

    def whole(self, root: Root) -> Value:
        if root == THIS:
            return self.this
        return self.values[root] if isinstance(root, int) and root < len(self.values) else NOTHING

    def run(self) -> Value:
        state, summary = self.state, self.summary
        for (kind, root, path), chain in list(summary.effects.items()):
            if path[:1] == (PACK,) and kind == "write":  # which of them is not known
                kind = "unknown"
            for origin in self.follow(root, path):
                reason = summary.reasons.get((kind, root, path), "")
                if kind == "write" or not (origin[2] or loaded(origin[1])):
                    state.effect(kind, origin, (*self.chain, *chain)[:16], reason)
                if kind == "unknown" and isinstance(origin[0], str):
                    self.calls.escape(state.load([origin]), self.node, reason)
        for root, path in summary.reads:
            state.read(self.follow(root, path))
        for (root, path), value in list(summary.stores.items()):
            held = self.translate(value)
            for origin in self.follow(root, path):
                state.keep(origin, held, self.chain)
        for origin, values, spots in list(summary.calls):
            called = self.translate(frozenset({origin}))
            if any(PACK in o[1] and o[1] != (PACK,) for value in values for o in value):
                for value in values:
                    self.calls.escape(self.translate(value), self.node, "passed on in a parameter pack")
            elif called:
                there = [frozenset(o for s in spot for o in self.follow(s[0], s[1])) for spot in self.spread(spots)]
                given = [self.translate(value) for value in self.spread(values)]
                self.calls.call_value(called, [], given, self.node, there)
        result = self.translate(summary.returned)
        if summary.made:
            made = state.new("made")
            for path, value in summary.made.items():
                state.add((made, path), self.translate(value))
            result |= {(made, (), False)}
        return result
