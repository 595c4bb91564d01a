"""One function's summary put to use at one call: its effects, stores and returned values in the caller's terms.

Knows summaries and states; whom a call reaches is in calling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tree_sitter import Node

from schema_patch.inference.domain.state import State
from schema_patch.inference.domain.summary import LOST, UNKNOWN, WRITE, Summary
from schema_patch.inference.domain.values import (
    ADDRESS,
    DEREF,
    EMPTY,
    MADE,
    MIXED,
    NOTHING,
    PACK,
    THIS,
    Callee,
    Closure,
    Local,
    Origin,
    Parameter,
    Path,
    Root,
    Value,
    at,
    constant,
    in_data,
    is_old,
    loaded,
    ordered,
    parameter,
    pointers,
    rooted,
    select,
    union,
)
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import DeclaredParameter
from schema_patch.schemas.inferred import Chain

Types = Callable[[Function], Sequence[DeclaredParameter]]
LONGEST = 16  # places of a chain


@dataclass(eq=False)
class Given:
    """The arguments of a call, and the call."""

    node: Node
    items: list[Node]  # as written; none where that is not known
    values: list[Value]
    spots: list[Value] | None = field(default=None, kw_only=True)  # the places that they denote, where they are told

    def behind(self, first: int) -> Given:
        """Without the first of them."""
        return Given(self.node, self.items[first:], self.values[first:])


class Caller(Protocol):
    """What a summary asks of the function that it is put to use in."""

    state: State

    def escape(self, value: Value, node: Node, reason: str) -> None: ...

    def call_value(self, called: Value, given: Given) -> Value: ...

    def call_method(self, objects: Value, name: str, given: Given) -> None: ...


def fitting(functions: Sequence[Function], values: list[Value], types: Types) -> list[Function]:
    """The overloads whose pointers can take these arguments: what is const does not become what can be written."""
    found = [f for f in functions if not any(_drops_const(p, v) for p, v in zip(types(f), values, strict=False))]
    return found or list(functions)


def _drops_const(declared: DeclaredParameter, value: Value) -> bool:
    if "*" not in declared.type or declared.const:
        return False
    places = rooted(value, Parameter)
    return bool(places) and all(o[2] for o in places)


def _mixed(value: Value) -> bool:
    """Something made of a pack, of which it is not known what stands for which argument."""
    return any(PACK in path for _, path, _ in value) and not any(path == (PACK,) for _, path, _ in value)


@dataclass(eq=False)
class AppliedCall:
    """One summary put to use at one call."""

    caller: Caller
    summary: Summary
    values: list[Value]
    spots: list[Value]
    this: Value
    node: Node
    chain: Chain

    def __post_init__(self) -> None:
        self.state = self.caller.state

    def base(self, root: Root, path: Path, source: Sequence[Value]) -> Value:
        """The caller's values or places for a parameter."""
        if root is THIS:
            return self.this
        if not isinstance(root, Parameter):
            return NOTHING
        return union(source[root.number :][: None if path[:1] == (PACK,) else 1])

    def follow(self, root: Root, path: Path) -> Value:
        """The caller's places for a path of the callee; its values where something is dereferenced."""
        value = self.base(root, path, self.values if DEREF in path or in_data(path) else self.spots)
        if root is THIS and path[:1] != (ADDRESS,):  # the value of `this` is an address, a path starts at the object
            value = self.state.select(value, DEREF)
        elif root is THIS:
            path = path[1:]
        path = path[1:] if path[:1] == (PACK,) else path
        for selector in path[:-1]:
            value = self.state.select(value, selector)
        return select(value, path[-1]) if path else value

    def spread(self, values: Sequence[Value]) -> list[Value]:
        """Arguments with a parameter pack among them as the arguments that stand for it here."""
        result: list[Value] = []
        for value in values:
            packs = [o[0].number for o in value if isinstance(o[0], Parameter) and o[1] == (PACK,)]
            if packs:
                result += [at(parameter(number)) for number in range(min(packs), len(self.values))]
            else:
                result.append(value)
        return result

    def translate(self, value: Value) -> Value:
        """A value of the callee as the caller sees it."""
        result: set[Origin] = set()
        for root, path, const in value:
            if isinstance(root, Callee | Closure):
                result.add((root, path, const))
                continue
            found = self.state.load(self.follow(root, path) if path else self.base(root, path, self.values))
            result |= constant(found) if const else found
        return frozenset(result)

    def lost(self) -> None:
        """A pointer that the callee is not seen to do anything with may be used in a way that is not understood."""
        for number, value in enumerate(self.values):
            if self.summary.ignores(number):
                for origin in rooted(pointers(value, to_write=True), Parameter):
                    self.state.effect(LOST, origin, self.chain)

    def effects(self) -> None:
        state, summary = self.state, self.summary
        for effect, chain in list(summary.effects.items()):
            kind, root, path = effect
            reason = summary.reasons.get(effect, "")
            if path[:1] == (PACK,) and kind == WRITE:  # which of them is not known
                kind, reason = UNKNOWN, summary.reasons.get((UNKNOWN, root, path), "")
            places = self.follow(root, path)
            for origin in ordered(select(places, ADDRESS) if kind != effect[0] else places):
                if kind == WRITE or not (origin[2] or loaded(origin[1])):
                    state.effect(kind, origin, (*self.chain, *chain)[:LONGEST], reason)
                if kind == UNKNOWN and isinstance(origin[0], Local):
                    self.caller.escape(state.load([origin]), self.node, reason)

    def calls(self) -> None:
        """What the callee left to its callers."""
        for origin, name, values, spots in list(self.summary.calls):
            called = self.translate(frozenset({origin}))
            if any(_mixed(value) for value in values):
                for value in values:
                    self.caller.escape(self.translate(value), self.node, "passed on in a parameter pack")
            elif called:
                there = [union(self.follow(s[0], s[1]) for s in spot) for spot in self.spread(spots)]
                given = Given(self.node, [], [self.translate(value) for value in self.spread(values)], spots=there)
                if name == "operator()":
                    self.caller.call_value(called, given)
                else:
                    self.caller.call_method(called, name, given)

    def run(self) -> Value:
        """Everything the call does; gives what it returns."""
        state, summary = self.state, self.summary
        self.effects()
        for root, path, const in summary.reads:
            found = self.follow(root, path)
            # A callee takes what it only reads as const, and says nothing of how the pointer was come by.
            state.read(constant(found) if const and in_data(path) else found)
        for (root, path), value in list(summary.stores.items()):
            held = state.copied(self.translate(value))  # an element that is stored elsewhere is a copy there
            for origin in self.follow(root, path):
                state.keep(origin, held)
        self.calls()
        self.lost()
        result = self.translate(summary.returned)
        if summary.mixed and any(is_old(root) for root, _, _ in result):  # else what it is handed is new, or nothing
            result |= state.make(MIXED)
        if summary.empty:
            result |= state.make(EMPTY)
        if summary.made:
            made = state.new(MADE)
            for path, value in summary.made.items():
                state.add((made, path), self.translate(value))
            result |= at(made)
        return result
