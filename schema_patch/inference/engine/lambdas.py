"""Lambdas: read where they stand, as if called there, and again with the arguments of each call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tree_sitter import Node

from schema_patch.cpp.syntax import children, part
from schema_patch.inference.domain.state import Variable
from schema_patch.inference.domain.values import NOTHING, RESULT, Closure, Origin, Value, at, union

from .declarations import Declarations
from .evaluator import Evaluator
from .frame import NAME, FunctionReader

MOST_READINGS = 12  # of one lambda in one function


@dataclass(eq=False)
class Lambdas(FunctionReader):
    """Makes lambdas into values, and reads them."""

    evaluator: Evaluator
    declarations: Declarations
    known: dict[Closure, Node] = field(default_factory=dict)
    seen: dict[tuple[object, ...], Value] = field(default_factory=dict)  # what a lambda returned that was read before
    readings: dict[Closure, int] = field(default_factory=dict)
    running: list[Closure] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)  # of the lambdas being read

    def of_lambda_expression(self, node: Node) -> Value:
        closure = Closure(node.start_byte)
        self.known[closure] = node
        for capture in children(node.child_by_field_name("captures")):
            left = capture.child_by_field_name("left")
            if left and capture.type == "lambda_capture_initializer":
                variable = self.state.declare(self.frame.text(left), Variable(self.state.new()))
                value = self.evaluator.value(capture.child_by_field_name("right"))
                self.state.assign(variable, value, self.frame.here(node))
        key = self.context(node)
        returned = self.seen.get(key)
        if returned is None:
            self.seen[key] = NOTHING
            returned = self.seen[key] = self.read(closure, [], [])
        self.state.heap[closure, (RESULT,)] = returned
        return at(closure)

    def context(self, node: Node) -> tuple[object, ...]:
        """A lambda's text and what its names mean: a dispatch macro repeats the same for every type."""
        text = self.frame.text(node)
        found = ((name, self.state.names.get(name)) for name in sorted(set(NAME.findall(text))))
        return text, *((v.root, self.state.heap.get((v.root, ()))) for _, v in found if v)

    def call(self, closure: Closure, values: list[Value], spots: list[Value]) -> Value:
        """What it returns for these arguments."""
        if not any(values) or closure not in self.known:
            return NOTHING
        return self.read(closure, values, spots)

    def read(self, closure: Closure, values: list[Value], spots: list[Value]) -> Value:
        count = self.readings.get(closure, 0)
        if closure in self.running:
            return NOTHING
        if count > MOST_READINGS:
            self.state.give_up(union(values), f"passed to a lambda that is called more than {MOST_READINGS} times")
            return NOTHING
        self.readings[closure] = count + 1
        self.running.append(closure)
        self.results.append(NOTHING)
        before = dict(self.state.heap)
        node = self.known[closure]
        with self.state.scope():
            for number, parameter in enumerate(children(part(node, "declarator", "parameters"))):
                inner = parameter.child_by_field_name("declarator")
                if inner:
                    given = spots if inner.type == "reference_declarator" else values
                    value = given[number] if number < len(given) else NOTHING
                    self.declarations.declare(inner, self.frame.text(part(parameter, "type")) or "auto", value, node)
            self.evaluator.execute(node.child_by_field_name("body"))
        self.state.merge(before)
        self.state.merge(self.state.leaving)
        self.running.pop()
        return self.results.pop()

    def results_of(self, value: Iterable[Origin]) -> Value:
        """What the lambdas among these values return."""
        return union(self.state.heap.get((origin[0], (RESULT,)), NOTHING) for origin in value)
