"""Calls of functions that stand in no file of the tree: what ATen's names promise, and what the model file says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import part
from schema_patch.inference.domain.values import BLOB, DATA, DENSE, NOTHING, PERHAPS, Value, at, union
from schema_patch.schemas import aten

from .applying import Given
from .calling import Calling
from .frame import FunctionReader
from .lambdas import Lambdas
from .memory import TensorMemory
from .objects import Objects

# Namespaces whose functions do what their names say: `x_` and `x_out` write, the others only read. Not those of streams
# and libraries, such as at::cuda or torch::cuda::nccl.
ATEN = frozenset(
    {("at",), ("torch",), ("at", "native"), ("torch", "stable"), ("torch", "special"), ("torch", "linalg")}
)
FOREIGN = frozenset((name,) for name in "std at torch c10 sycl cuda cub thrust cute cutlass oneapi esimd".split())
# Of the C++ library and Thrust: they may be given first how to run.
ALGORITHMS = frozenset("fill fill_n copy copy_n copy_if transform uninitialized_copy iota partial_sum sort".split())
POLICY = re.compile(r"\b(?:thrust::(?:cuda|hip|device|host|seq)\b(?!_)|execution::|par\b|\w*policy)", re.IGNORECASE)
SWAPS = frozenset({"atomicCAS", "atomicCAS_system", "atomicCAS_block"})
TOLD = re.compile(r"\binplace\b|\bmax_norm\b")  # options of torch::nn::functional
CONTAINERS = frozenset(
    "vector array tuple pair optional initializer_list map make_tuple make_pair tie tuple_cat ArrayRef "
    "TensorList".split()
)


@dataclass(eq=False)
class NamedCall(Given):
    """A call by name."""

    name: str
    qualifiers: tuple[str, ...]
    function: Node

    @property
    def foreign(self) -> bool:
        """Whether its namespace is a library's, and so none of the tree's."""
        return self.qualifiers[:1] in FOREIGN

    @property
    def functional(self) -> bool:
        """Whether its namespace is one of ATen's, whose functions do what their names say."""
        if self.qualifiers[:2] == ("at", "_ops"):  # `add_Tensor::call`; not `zero_`, `add__Tensor` and `add_out`
            return not re.search("__|_(out)?$", self.qualifiers[-1])
        return self.qualifiers in ATEN or self.qualifiers[-2:] == ("nn", "functional")


@dataclass(eq=False)
class LibraryCalls(FunctionReader):
    """Knows what functions outside the tree do, by their names."""

    memory: TensorMemory
    lambdas: Lambdas
    calling: Calling
    objects: Objects

    def call(self, call: NamedCall) -> Value | None:
        """What the call gives; None where nothing is known of it."""
        self.calling.run_functors(call.values, call.node)
        if self.frame.boxed and call.name in ("to", "from") and call.values:  # a tensor and an element of the stack
            return call.values[-1]
        for rule in (self.writes, self.containers, self.tensors, self.reads):
            found = rule(call)
            if found is not None:
                return found
        return None

    def writes(self, call: NamedCall) -> Value | None:
        """Functions that write what some of their arguments lead to."""
        values = call.values
        if call.name == "from_blob" and values:
            root = self.state.new(BLOB)
            self.state.add((root, (DATA,)), values[0])
            return at(root)
        if call.functional:
            return self.aten(call)
        written = self.positions(call)
        if written is None or not all(-len(values) <= number < len(values) for number in written):
            return None
        self.memory.write_some(values, {number % len(values) for number in written}, call.node)
        return NOTHING

    def aten(self, call: NamedCall) -> Value | None:
        """A function of ATen that writes by its name, or may: `add_`, `add_out`, `add_outf`, whose outputs are last."""
        name, values = call.name, call.values
        outs = self.models.outs(name)
        if not call.items or not (outs or (name.endswith("_") and name not in self.models.names.not_in_place)):
            self.perhaps(call)
            return None
        first = len(values) - outs if name.endswith("_outf") else 0
        for number, value in enumerate(values):
            if number == max(first, 0):
                self.memory.write_data(value, call.node)
            elif first < number < first + outs:  # `max_out` has one or two
                self.calling.escape(value, call.node, f"passed to {name}, which may write it")
            else:
                self.state.read_data(value)
        return values[max(first, 0)]

    def perhaps(self, call: NamedCall) -> None:
        """What a function of ATen writes if it is told to."""
        trains = call.name in aten.TRAINS
        if trains or any(TOLD.search(self.frame.text(item)) for item in call.items):
            for value in call.values[1:] if trains else call.values:
                self.calling.escape(value, call.node, f"passed to {call.name}, which may write it")

    def positions(self, call: NamedCall) -> tuple[int, ...] | None:
        """The arguments that the models say are written."""
        written, items, text = self.models.writes(call.name), call.items, self.frame.text
        if call.name in SWAPS and len(items) == 3 and text(items[1]) == text(items[2]):
            return ()  # a value is exchanged for itself: a read
        if call.name in ALGORITHMS and items:
            skipped = 1 if POLICY.search(text(items[0])) else 0
            two = call.name == "transform" and len(items) == skipped + 5  # two ranges are read
            return tuple(number + skipped + two for number in written or ())
        return written

    def containers(self, call: NamedCall) -> Value | None:
        """Containers of the C++ library and of torch, and what gives one of their elements, or an argument back."""
        values, name = call.values, call.name
        if name == "vector" and len(values) == 2:
            return self.objects.copy_of_range(values)
        if name == "tuple_cat":
            values = [part for value in values for part in self.state.elements(value) or [value]]
        if name in CONTAINERS:
            return self.objects.listed(values)
        texts = self.frame.template_arguments(part(call.node, "function")) if name == "get" else []
        if values and texts and texts[0].isdigit():
            return self.state.element(values[0], int(texts[0]))
        if name in self.models.aliases and not (call.functional and name in ("max", "min")):
            return union(values[number] for number in self.models.aliases[name] if number < len(values))
        return None

    def tensors(self, call: NamedCall) -> Value | None:
        """Functions that make tensors, and those that only read."""
        if call.name in self.models.names.makes and (call.functional or not call.qualifiers):
            return self.memory.new_tensor(call.values)
        loads = call.name in self.models.names.loads
        if loads or call.name in self.models.names.reads:
            if loads:
                self.state.read_data(union(call.values))
            return self.lambdas.results_of(union(call.values))
        return None

    def reads(self, call: NamedCall) -> Value | None:
        """Any other function of ATen: it reads its arguments, and perhaps gives a view of the first."""
        if not call.functional:
            return None
        values, models = call.values, self.models
        self.state.read_data(self.state.reachable(union(values)))  # of lists too
        if call.name in models.names.views and values:
            return values[0]
        dense = call.name in models.names.dense
        if values and (dense or call.name in models.names.perhaps):
            return self.state.select(values[0], DENSE if dense else PERHAPS)
        return self.lambdas.results_of(union(values))
