"""What a call does: to a function of the tree, to one that the models know, or to one of which nothing is known.

Knows how calls are written in C++ and what ATen's names promise; statements are in flow.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from schema_patch.inference.domain.values import NOTHING, THIS, Origin, Summary, Value, loaded, mutable, select
from schema_patch.inference.index.constants import Constants
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import Parameter, read_parameters

from .applying import Call, fitting
from .expressions import CASTS, Expressions, arguments

# Namespaces whose functions do what their names say: `x_` and `x_out` write, the others only read. Not those of streams
# and libraries, such as at::cuda or torch::cuda::nccl.
ATEN = frozenset(
    {("at",), ("torch",), ("at", "native"), ("torch", "stable"), ("torch", "special"), ("torch", "linalg")}
)
FOREIGN = frozenset("std at torch c10 sycl cuda cub thrust cute cutlass oneapi esimd".split())
TENSOR_LIKE = re.compile(r"\b(?:Tensor|TensorBase|TensorList|TensorOptions)\b")
# Of the C++ library and Thrust: they may be given first how to run.
ALGORITHMS = frozenset("fill fill_n copy copy_n copy_if transform uninitialized_copy iota partial_sum sort".split())
POLICY = re.compile(r"\b(?:thrust::(?:cuda|hip|device|host|seq)\b(?!_)|execution::|par\b|\w*policy)", re.IGNORECASE)
SWAPS = frozenset({"atomicCAS", "atomicCAS_system", "atomicCAS_block"})
EXCHANGES = {"swap": 2, "exchange": 1}  # of the C++ library: how many of the arguments are assigned to
MOST_OVERLOADS = 32  # of one name that are looked into; where there are more, a generator wrote them, all alike
MOST_LATER = 100  # calls of one function that are left to its callers
CONTAINERS = frozenset(
    "vector array tuple pair optional initializer_list map make_tuple make_pair tie ArrayRef TensorList".split()
)


class Calls(Expressions):
    """Evaluates calls."""

    def summary_of(self, function: Function, constants: Constants = ()) -> Summary:
        raise NotImplementedError

    def method(self, node: Node, function: Node, items: list[Node]) -> Value:
        raise NotImplementedError

    def parameters_of(self, function: Function) -> Sequence[Parameter]:
        """The parameters of a function as its header declares them."""
        return read_parameters(self.index.signature(function)[1])

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
            return self.cast(values[0], inside, items[0]) if values else NOTHING
        if not qualifiers:
            variable = self.state.find(name)
            if variable:
                return self.call_value(self.named(name), items, values, node)
        if qualifiers and self.types.get(qualifiers[-1]):
            qualifiers = tuple(self.types[qualifiers[-1]].split("::"))
        maker = self.models.accessor_makers.get(name)
        if maker is not None and maker < len(values):
            return self.state.select(values[maker], "#")
        foreign = bool(qualifiers) and qualifiers[0] in FOREIGN
        if not foreign:
            count = -1 if any(item.type == "parameter_pack_expansion" for item in items) else len(items)
            found = self.index.resolve(name, qualifiers, count, self.body.function)
            if found:
                this: Value = NOTHING
                if found[0].in_class and not qualifiers:
                    this = frozenset({(THIS, ("&",), False)})
                return self.apply(found, items, values, this, node, None, self.template_arguments(function))
            if self.types.get(name) == "" and len(values) == 1:  # T(x) for a template's T
                return values[0]
        launched = self.launched(name, function, items, values, node)
        if launched is not None:
            return launched
        if name == "apply" and qualifiers and not foreign:  # of torch::autograd::Function: forward, behind a context
            forward = self.index.methods(qualifiers[-1], "forward", len(items) + 1, self.body.function.path)
            if forward:
                return self.apply(forward, [function, *items], [NOTHING, *values], NOTHING, node)
        if name in EXCHANGES and len(items) == 2:
            for item in items[: EXCHANGES[name]]:
                self.assign(item, values[0] | values[1], node)
            return NOTHING
        modelled = self.modelled(name, qualifiers, items, values, node)
        if modelled is not None:
            return modelled
        cls = self.class_of("::".join(names))
        if cls:
            return self.construct(cls, node.child_by_field_name("arguments"), node)
        return self.unknown_call(name, values, node, bool(qualifiers) and not foreign)

    def launched(self, name: str, function: Node, items: list[Node], values: list[Value], node: Node) -> Value | None:
        """What runs what it is given, as `cudaLaunchKernel(f, …)`; None where it is no such function."""
        launch = self.models.launches.get(name)
        if not launch or len(values) <= launch.callee:
            return None
        rest = slice(min(launch.first, len(values) - 1), None)
        if launch.packed:
            # Addresses without a type: that a variable is const says nothing of the kernel.
            packed = [mutable(self.state.select(v, "*")) for v in self.state.elements(values[rest.start])]
            return self.call_value(values[launch.callee], [], packed, node, packed) if packed else None
        if launch.callee >= 0:
            return self.call_value(values[launch.callee], items[rest], values[rest], node)
        kernels = self.kernels(self.template_arguments(function))
        return self.apply(kernels, items[rest], values[rest], NOTHING, node) if kernels else None

    def kernels(self, texts: Sequence[str]) -> list[Function]:
        """The call operators of the classes that template arguments name, as in `launch<device_kernel<K>, K>`."""
        classes = {self.class_of(text) or self.class_of(text.partition("<")[2].rstrip("> ")) for text in texts} - {""}
        path = self.body.function.path
        return [f for cls in sorted(classes) for f in self.index.methods(cls, "operator()", -1, path)]

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
        functional = qualifiers in ATEN or qualifiers[-2:] == ("nn", "functional")
        if qualifiers[:2] == ("at", "_ops"):  # `add_Tensor::call`; not `add__Tensor::call` and `add_out::call`
            functional = not re.search("__|_out$", qualifiers[-1])
        if functional and items:
            written = self.aten(name, values)
            if written is not None:
                self.write_data(values[written], node)
                self.state.read_data(o for number, value in enumerate(values) if number != written for o in value)
                return values[written]
        written_to = None if functional else models.writes(name)
        if name in SWAPS and len(items) == 3 and self.text(items[1]) == self.text(items[2]):
            written_to = ()  # a value is exchanged for itself: a read
        if name in ALGORITHMS and items and not functional:
            skipped = 1 if POLICY.search(self.text(items[0])) else 0
            two = name == "transform" and len(items) == skipped + 5  # two ranges are read
            written_to = tuple(number + skipped + two for number in models.writes(name) or ())
        if written_to is not None and all(-len(values) <= number < len(values) for number in written_to):
            places = [number % len(values) for number in written_to]
            for number, value in enumerate(values):
                if number in places:
                    self.write_through(value, node)
                else:
                    self.state.read_data(value)
            return NOTHING
        if name == "vector" and len(values) == 2 and all(values):
            return self.copy_of_range(values)
        if name in CONTAINERS:
            root = self.state.new("list")
            self.fill(root, (), [("", value) for value in values])
            return frozenset({(root, (), False)}).union(*values)
        texts = self.template_arguments(node.child_by_field_name("function")) if name == "get" and values else []
        if texts and texts[0].isdigit():
            return self.state.element(values[0], int(texts[0]))
        if name in models.aliases and not (functional and name in ("max", "min")):
            return frozenset(o for number in models.aliases[name] if number < len(values) for o in values[number])
        if name in models.makes and (functional or not qualifiers):
            return self.new_tensor(values)
        if name in models.reads:
            if name in models.loads:
                self.state.read_data(o for value in values for o in value)
            return self.lambda_results(values)
        if functional:
            self.state.read_data(o for value in values for o in value)
            if name in models.views and values:
                return values[0]
            if name in models.perhaps and values:
                return self.state.select(values[0], "+" if name in models.dense else "~")
            return self.lambda_results(values)
        return None

    def copy_of_range(self, values: Sequence[Value]) -> Value:
        """A vector of what stands between two pointers; of so many elements, where the first is a number."""
        if not all(any(o[1][-1:] == ("@",) for o in value) for value in values):
            root = self.state.new("list")
            self.fill(root, (), [("", value) for value in values])
            return frozenset({(root, (), False)}).union(*values)
        self.state.read_data(values[0] | values[1])
        return frozenset({(self.state.new("list"), (), False)})

    def new_tensor(self, values: Sequence[Value] = ()) -> Value:
        """A tensor that the function makes: a place of its own, so that pointers kept in it are found again."""
        self.state.read_data(o for value in values for o in value if o[1][-1:] == ("@",))
        return frozenset({(self.state.new("tensor"), (), False)})

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
        """The data of these tensors is written, or of those in a list; what a made tensor stands on is that data."""
        made = frozenset(o for o in value if isinstance(o[0], str))
        if made:
            self.state.store(select(self.state.select(made, "@") - select(made, "@"), "*"), NOTHING, self.here(node))
        for root, path, const in value | (self.state.select(made, "*") if made else NOTHING):
            if isinstance(root, int) and "@" not in path and "#" not in path:
                self.state.effect("write", (root, (*path, "@", "*"), const), self.here(node))

    def write_through(self, value: Value, node: Node) -> None:
        """What these pointers lead to is written, or the data of these tensors."""
        tensors = frozenset(o for o in value if self.is_tensor(o))
        self.write_data(tensors, node)
        self.state.store(select(value - tensors, "*"), NOTHING, self.here(node))

    def is_tensor(self, origin: Origin) -> bool:
        """Whether a place is a tensor that the function was given, by what its parameters are declared as."""
        root, path, _ = origin
        if not isinstance(root, int) or root < 0 or "@" in path or "#" in path:
            return False
        kind = self.body.parameters[root].type if root < len(self.body.parameters) else ""
        return "*" not in kind and bool(TENSOR_LIKE.search(kind))

    def unknown_call(self, name: str, values: list[Value], node: Node, library: bool) -> Value:
        if name in self.body.template_names:
            for value in values:
                self.escape(value, node, f"passed to {name}, a template's parameter")
            return NOTHING
        if name[:1].isupper() and not name.isupper() and "_" not in name:  # a class of which nothing is known
            for value in values if library else ():  # or a function of a library, which may do anything
                self.escape(value, node, f"passed to {name}, not in this tree")
            self.run_functors(values, node)
            return frozenset().union(*values) if values else NOTHING
        declared = [read_parameters(p) for p in self.index.prototypes.get(name, ())]
        fitting = [p for p in declared if len(p) == len(values)]
        for number, value in enumerate(values):
            if fitting and all(p[number].const and "*" in p[number].type for p in fitting):
                self.state.read_data(value)
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
                self.state.read_data([origin])

    def lose(self, value: Value, node: Node) -> None:
        """Pointers in an object of which a method that is not seen may write through them."""
        for origin in self.state.reachable(value):
            if isinstance(origin[0], int) and origin[1][-1:] == ("@",) and not origin[2]:
                self.state.effect("lost", origin, self.here(node))

    def run_functors(self, values: Sequence[Value], node: Node) -> Value:
        """Objects with a call operator are called by whoever they are handed to; gives the other values."""
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
                result |= self.apply([root[1]], items, values, NOTHING, node, spots, root[2])
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
                self.later(origin, "operator()", values, spots or self.spots(items, values))
                done = True
        if not done:
            self.lose(called, node)
            for value in values:
                self.escape(
                    value, node, f"passed to {self.text(node).split('(')[0][:40].strip()}, which is not resolved"
                )
        return frozenset(result)

    def later(self, origin: Origin, name: str, values: Sequence[Value], spots: Sequence[Value]) -> None:
        """Leaves a call of what a parameter is, or of its method, to the callers, who know what they hand in."""
        calls = self.state.summary.calls
        if len(calls) < MOST_LATER:
            calls[origin, name, tuple(values), tuple(spots)] = None

    def call_method(self, objects: Value, name: str, values: list[Value], spots: list[Value], node: Node) -> None:
        """A method of these objects, called in a callee that did not know their classes."""
        for origin in objects:
            root, path, _ = origin
            cls = self.state.classes.get(root) if not path else None
            if cls:
                found = self.index.methods(cls, name, len(values), self.body.function.path)
                self.apply(found, [], values, select([origin], "&"), node, spots)
            elif isinstance(root, int) and "@" not in path and "#" not in path:
                self.later(origin, name, values, spots)

    def apply(
        self,
        functions: Sequence[Function],
        items: list[Node],
        values: list[Value],
        this: Value,
        node: Node,
        spots: list[Value] | None = None,
        template: Sequence[str] | Constants = (),
    ) -> Value:
        """The effects of calling any of these functions; `spots` are the places of the arguments, `template` the
        template arguments as written, or what is known of them."""
        result: set[Origin] = set()
        places = self.spots(items, values) if spots is None else spots
        functions = functions[:MOST_OVERLOADS]
        for function in fitting(functions, values, self.parameters_of) if len(functions) > 1 else functions:
            texts = [item for item in template if isinstance(item, str)]
            known = tuple(item for item in template if not isinstance(item, str))
            summary = self.summary_of(function, known or self.constants_of(function, texts))
            result |= Call(self, summary, values, places, this, node).run()
        return frozenset(result)

    def spots(self, items: list[Node], values: list[Value]) -> list[Value]:
        """The places that the arguments denote, as a reference parameter sees them."""
        pairs = zip(items, values, strict=False)
        places = [value if item.type == "call_expression" else self.places(item) for item, value in pairs]
        return places + values[len(places) :]
