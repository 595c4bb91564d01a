"""One function's summary put to use at one call: its effects, stores and returned values in the caller's terms.

Knows summaries and states; how calls are written is in calls.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from schema_patch.inference.domain.values import (
    MIXED,
    NOTHING,
    PACK,
    THIS,
    Origin,
    Path,
    Root,
    Summary,
    Value,
    constant,
    loaded,
    select,
)
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import Parameter
from schema_patch.schemas.inferred import Chain

if TYPE_CHECKING:
    from .calls import Calls

Types = Callable[[Function], Sequence[Parameter]]


def fitting(functions: Sequence[Function], values: list[Value], types: Types) -> list[Function]:
    """The overloads whose pointers can take these arguments: what is const does not become what can be written."""
    found = [f for f in functions if not any(_drops_const(p, v) for p, v in zip(types(f), values, strict=False))]
    return found or list(functions)


def _drops_const(parameter: Parameter, value: Value) -> bool:
    if "*" not in parameter.type or parameter.const:
        return False
    places = [o for o in value if isinstance(o[0], int)]
    return bool(places) and all(o[2] for o in places)


def _mixed(value: Value) -> bool:
    """Something made of a pack, of which it is not known what stands for which argument."""
    return any(PACK in path for _, path, _ in value) and not any(path == (PACK,) for _, path, _ in value)


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

    def lost(self) -> None:
        """A pointer that the callee is not seen to do anything with may be used in a way that is not understood."""
        for number, value in enumerate(self.values):
            for origin in value if self.summary.ignores(number) else ():
                if isinstance(origin[0], int) and origin[1][-1:] == ("@",) and not origin[2]:
                    self.state.effect("lost", origin, self.chain)

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
                state.keep(origin, held)
        for origin, name, values, spots in list(summary.calls):
            called = self.translate(frozenset({origin}))
            if any(_mixed(value) for value in values):
                for value in values:
                    self.calls.escape(self.translate(value), self.node, "passed on in a parameter pack")
            elif called:
                there = [frozenset(o for s in spot for o in self.follow(s[0], s[1])) for spot in self.spread(spots)]
                given = [self.translate(value) for value in self.spread(values)]
                if name == "operator()":
                    self.calls.call_value(called, [], given, self.node, there)
                else:
                    self.calls.call_method(called, name, given, there, self.node)
        self.lost()
        result = self.translate(summary.returned)
        if summary.mixed:
            result |= {(state.new(MIXED), (), False)}
        if summary.made:
            made = state.new("made")
            for path, value in summary.made.items():
                state.add((made, path), self.translate(value))
            result |= {(made, (), False)}
        return result
