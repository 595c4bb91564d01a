"""Calls of functions, lambdas and objects that are known, of those that callers know, and of what nobody sees.

Knows values, not how a call is written in C++: that is in calls.py and methods.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schema_patch.cpp.syntax import part
from schema_patch.inference.domain.values import (
    ADDRESS,
    DEREF,
    EMPTY,
    NOTHING,
    Callee,
    Closure,
    Field,
    Local,
    Origin,
    Parameter,
    Script,
    Value,
    at,
    in_data,
    ordered,
    rooted,
    select,
    union,
)
from schema_patch.inference.index.constants import Constants
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import DeclaredParameter, plain, read_parameters
from schema_patch.schemas.inferred import Kind

from .applying import AppliedCall, Given, fitting
from .evaluator import Evaluator
from .frame import MOST_OVERLOADS, NAME, FunctionReader
from .lambdas import Lambdas
from .memory import TensorMemory

MOST_LATER = 100  # calls of one function that are left to its callers


@dataclass(eq=False)
class Calling(FunctionReader):
    """Calls what values stand for."""

    memory: TensorMemory
    evaluator: Evaluator
    lambdas: Lambdas

    def apply(
        self, functions: Sequence[Function], given: Given, this: Value, template: Sequence[str] | Constants = ()
    ) -> Value:
        """The effects of calling any of these functions; `template` are the template arguments as written, or what is
        known of them."""
        frame, values, node, spots = self.frame, given.values, given.node, given.spots
        if spots is None:
            plainly = [plain(frame.index.signature(function)[1]) for function in functions]
            spots = self.evaluator.spots(given.items, values, frozenset.intersection(*plainly))
        if len(functions) > MOST_OVERLOADS:
            reason = f"passed to {functions[0].name}, which has more than {MOST_OVERLOADS} definitions"
            self.escape(union(values), node, reason)
            functions = functions[:MOST_OVERLOADS]
        texts = [item for item in template if isinstance(item, str)]
        known = tuple(item for item in template if not isinstance(item, str))
        result = NOTHING
        for function in fitting(functions, values, self.declared) if len(functions) > 1 else functions:
            constants = {*(known or frame.constants_of(function, texts)), *frame.flags_of(function, given.items)}
            summary = frame.summary_of(function, tuple(sorted(constants)))
            result |= AppliedCall(self, summary, values, spots, this, node, frame.here(node)).run()
        return result

    def declared(self, function: Function) -> Sequence[DeclaredParameter]:
        """The parameters of a function as its header declares them."""
        return read_parameters(self.frame.index.signature(function)[1])

    def spots(self, given: Given) -> list[Value]:
        return given.spots or self.evaluator.spots(given.items, given.values)

    def call_value(self, called: Value, given: Given) -> Value:
        """A call of what these values are: functions, lambdas, objects with a call operator, parameters."""
        result, done, values, node = NOTHING, False, given.values, given.node
        for origin in ordered(called | self.among(called)):
            root, path, _ = origin
            if isinstance(root, Callee):
                result |= self.apply([root.function], given, NOTHING, root.constants)
            elif isinstance(root, Closure):
                result |= self.lambdas.call(root, values, self.spots(given))
                result |= self.lambdas.results_of([origin])
            elif isinstance(root, Local) and not path and root in self.state.classes:
                found = self.frame.methods(self.state.classes[root], "operator()", len(values))
                if not found:
                    continue
                result |= self.apply(found, given, at(root, ADDRESS))
            elif isinstance(root, Script):
                self.launch(root, values, node)
            elif isinstance(root, Parameter) and not in_data(path):
                self.later(origin, "operator()", given)
            elif not (isinstance(root, Local) and root.kind == EMPTY):
                continue
            done = True
        if not done:
            self.memory.lose(called, node)
            name = self.frame.text(node).split("(")[0][:40].strip()
            where = "not resolved" if self.heard_of(node) else "not in this tree"
            self.escape_all(given, f"passed to {name}, which is {where}")
        return result

    def launch(self, script: Script, values: list[Value], node: Node) -> None:
        """A kernel of a Python file runs: its arguments begin with the first tensor, behind numbers that say how."""
        first = next((n for n, value in enumerate(values) if not all(map(self.state.blank, value))), len(values))
        answers = self.frame.index.script(script.file, script.name, len(values) - first)
        if answers is None:
            self.escape_all(Given(node, [], values), f"passed to {script.name} of {script.file[-1]}, not followed")
            return
        for answer, value in zip(answers, values[first:], strict=True):
            if answer.kind is Kind.WRITTEN:
                self.memory.write_through(value, node)
            elif answer.kind is Kind.READ:
                self.state.read_data(value)
            else:
                self.escape(value, node, f"passed to {script.name} of {script.file[-1]}: {answer.reason}")

    def among(self, called: Value) -> Value:
        """The functions among the elements of a list in braces, of which one is called by the name of a field, or by
        the key of a pair."""
        pairs = ((r, p[:-1] if p and isinstance(p[-1], Field) else p) for r, p, _ in called if isinstance(r, Local))
        held = (self.state.heap.get((root, (*path, DEREF)), NOTHING) for root, path in pairs)
        return rooted((o for value in held for o in self.state.load(value)), Callee | Closure)

    def heard_of(self, node: Node) -> bool:
        """Whether anything that is called here is a variable, or stands in any file: `MACRO(vendor::f)(x)` may not."""
        names = NAME.findall(self.frame.text(part(node, "function")))
        return not names or any(self.state.names.get(name) or self.frame.index.knows(name) for name in names)

    def later(self, origin: Origin, name: str, given: Given) -> None:
        """Leaves a call of what a parameter is, or of its method, to the callers, who know what they hand in."""
        calls, call = self.state.summary.calls, (origin, name, tuple(given.values), tuple(self.spots(given)))
        if call in calls or len(calls) < MOST_LATER:
            calls[call] = None
        else:
            reason = f"passed to one of more than {MOST_LATER} calls of what callers hand in"
            self.escape(union(given.values), given.node, reason)

    def call_method(self, objects: Value, name: str, given: Given) -> None:
        """A method of these objects, called in a callee that did not know their classes."""
        for origin in ordered(objects):
            root, path, _ = origin
            cls = self.state.classes.get(root) if not path else None
            if cls:
                self.apply(self.frame.methods(cls, name, len(given.values)), given, select([origin], ADDRESS))
            elif isinstance(root, Parameter) and not in_data(path):
                self.later(origin, name, given)

    def run_functors(self, values: Sequence[Value], node: Node) -> Value:
        """Objects with a call operator are called by whoever they are handed to; gives the other values."""
        rest: set[Origin] = set()
        for origin in ordered(union(values)):
            cls = self.state.classes.get(origin[0]) if not origin[1] else None
            found = self.frame.methods(cls, "operator()", -1) if cls else []
            if found:
                self.apply(found, Given(node, [], []), at(origin[0], ADDRESS))
            else:
                rest.add(origin)
        return frozenset(rest)

    def escape(self, value: Value, node: Node, reason: str) -> None:
        """Something that is not seen may write what these values lead to, or call what they are."""
        if value := self.run_functors([value], node):
            self.state.give_up(value, reason, self.frame.here(node))

    def escape_all(self, given: Given, reason: str) -> None:
        """The same for arguments, which may be taken by reference."""
        for value in (*given.values, *self.evaluator.referred(given.items)):
            self.escape(value, given.node, reason)
