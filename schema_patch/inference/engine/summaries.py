"""Summaries of functions, each made once: the one place where the parts of a reading are put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from schema_patch.inference.domain.models import Models
from schema_patch.inference.domain.state import State
from schema_patch.inference.domain.summary import Summary
from schema_patch.inference.domain.values import (
    DEEPEST,
    EMPTY,
    MIXED,
    NOTHING,
    Callee,
    Local,
    Parameter,
    Path,
    Value,
    rooted,
)
from schema_patch.inference.index.asked import number
from schema_patch.inference.index.constants import Constants
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import parse

from .assembly import Assembly
from .calling import Calling
from .calls import Calls
from .declarations import Declarations
from .evaluator import Evaluator
from .frame import FunctionFrame, Kernels
from .lambdas import Lambdas
from .library import LibraryCalls
from .memory import TensorMemory
from .methods import Methods
from .objects import Objects
from .statements import Statements
from .types import Types

Key: TypeAlias = tuple[tuple[str, int], Constants]


class Summaries:
    """The summary of each function, made when it is first asked for.

    Recursion is cut where it closes. Of functions that call each other in a circle always the same one is read first,
    so that what is said of them does not depend on which was asked for.
    """

    def __init__(self, index: Index, models: Models) -> None:
        self.index = index
        self.models = models
        self.kernels: Kernels = lambda _: []  # of operators, by name
        self.known: dict[Key, Summary] = {}
        self.open: dict[Key, int] = {}  # those being read, and how deep
        self.lowest: list[int] = []  # of each of them: the outermost of them that is called from it
        self.passing: dict[Key, _Passing] = {}  # those read within a circle that is still open
        self.asked: dict[Key, set[int]] = defaultdict(set)  # the names that were looked up to read each, by number
        self.called: dict[Key | None, set[Key]] = defaultdict(
            set
        )  # whose summaries were used for each; None: no function
        self.reading: Key | None = None  # the function at hand

    def of(self, function: Function, constants: Constants = ()) -> Summary:
        """What calling the function does, its template parameters being what is known of them."""
        key = function.key, constants
        self.called[self.reading].add(key)
        found = self.known.get(key)
        if found is not None:
            return found
        if key in self.open:
            return self._within(Summary(), self.open[key])
        if key in self.passing:
            return self._within(self.passing[key].summary, self.passing[key].low)
        depth = self.open[key] = len(self.open)
        self.lowest.append(depth)
        made = self._read(key, function)
        del self.open[key]
        low = self.lowest.pop()
        if low < depth:
            self.passing[key] = _Passing(made, low, function)
            return self._within(made, low)
        circle = {name: self.passing.pop(name) for name in list(self.passing) if self.passing[name].low >= depth}
        first = min(circle, default=key)
        if first < key:
            self.of(circle[first].function, first[1])
        else:
            self.known |= {name: member.summary for name, member in circle.items()}
        return self.known.setdefault(key, made)

    def _read(self, key: Key, function: Function) -> Summary:
        outer, self.reading = self.reading, key
        with self.index.asked.apart() as names:
            body = parse(function, self.index)
            made = read(FunctionFrame(body, self.index, self.models, self.of, self.kernels, dict(key[1])))
        self.reading = outer
        self.asked[key] |= {number(function.read_as), *map(number, names)}
        return made

    def names(self) -> set[int]:
        """What was looked up for the summaries that were asked for outside of any function since the last call."""
        todo, seen = self.called.pop(None, set()), set[Key]()
        while todo:
            key = todo.pop()
            seen.add(key)
            todo |= self.called[key] - seen
        return set[int]().union(*(self.asked[key] for key in seen))

    def _within(self, summary: Summary, low: int) -> Summary:
        """A summary that depends on a function that is still being read."""
        self.lowest[-1] = min(self.lowest[-1], low)
        return summary


@dataclass(frozen=True, slots=True)
class _Passing:
    """A function read within a circle that is still open, and how deep its outermost function lies."""

    summary: Summary
    low: int
    function: Function


def reading(frame: FunctionFrame) -> Statements:
    """All parts of the reading of one function, each with those that it knows."""
    memory, types = TensorMemory(frame), Types(frame)
    evaluator = Evaluator(frame, memory)
    declarations = Declarations(frame, types)
    lambdas = Lambdas(frame, evaluator, declarations)
    calling = Calling(frame, memory, evaluator, lambdas)
    objects = Objects(frame, memory, evaluator, types, calling)
    library = LibraryCalls(frame, memory, lambdas, calling, objects)
    methods = Methods(frame, memory, evaluator, types, lambdas, calling)
    Calls(frame, evaluator, types, lambdas, calling, objects, library, methods)
    Assembly(frame, memory, evaluator, calling)
    return Statements(frame, evaluator, types, declarations, lambdas, objects)


def read(frame: FunctionFrame) -> Summary:
    """What one function does."""
    statements, state = reading(frame), frame.state
    returned = statements.run()
    statements.part()
    state.merge(state.leaving)
    summary = state.summary
    summary.returned = rooted(returned, Parameter | Callee)
    handed = {any(_handed(values[0])) for values, _ in summary.returns if values}
    locals_ = {root for root, path, _ in returned if isinstance(root, Local) and not path}
    summary.mixed = len(handed) > 1 or any(isinstance(o[0], Local) and o[0].kind == MIXED for o in returned)
    summary.made = _made(state, locals_)
    summary.empty = any(root.kind == EMPTY for root in locals_)
    summary.finish()
    return summary


def _made(state: State, objects: Collection[Local]) -> dict[Path, Value]:
    """What a caller finds behind each path of objects that it is given, through the objects that stand in them."""
    made: dict[Path, Value] = {}
    todo: list[tuple[Local, Path]] = [(root, ()) for root in objects]
    seen = set(todo)
    while todo:
        holder, before = todo.pop()
        for inner in state.inside.get(holder, ()):
            path = (*before, *inner)
            held = state.load(state.heap.get((holder, inner), NOTHING)) if len(path) <= DEEPEST else NOTHING
            if value := rooted(held, Parameter | Callee):  # what a caller can make something of
                made[path] = made.get(path, NOTHING) | value
            further = {(root, path) for root, rest, _ in held if isinstance(root, Local) and not rest} - seen
            seen |= further
            todo += further
    return made


def _handed(value: Value) -> Iterable[bool]:
    """For each place whether it is a parameter itself."""
    return (isinstance(root, Parameter) and not path for root, path, _ in value)
