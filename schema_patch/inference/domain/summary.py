"""What calling a function does to what its parameters lead to, and what it gives back: values, no syntax."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from schema_patch.schemas.inferred import Chain

from .values import NOTHING, PACK, Origin, Parameter, Path, Root, Value

WRITE, UNKNOWN = "write", "unknown"
LOST = "lost"  # a pointer of which nothing more is seen
TAKEN = "taken"  # a pointer that is asked for to write through
Effect: TypeAlias = tuple[str, Parameter, Path]
MOST = 400  # effects of one function; real ones have few
MANY = 256  # more arguments than a function has


@dataclass(slots=True)
class Summary:
    """What a call does: effects on what its parameters lead to, what it stores where, what it returns."""

    effects: dict[Effect, Chain] = field(default_factory=dict)
    reasons: dict[Effect, str] = field(default_factory=dict)  # why something is unknown
    reads: set[tuple[Parameter, Path, bool]] = field(default_factory=set)  # where data is read; whether as const
    stores: dict[tuple[Parameter, Path], Value] = field(default_factory=dict)
    calls: dict[tuple[Origin, str, tuple[Value, ...], tuple[Value, ...]], None] = field(default_factory=dict)
    """Calls of what a parameter is, or of its method: its name, the arguments' values and places."""
    returned: Value = NOTHING
    returns: list[tuple[tuple[Value, ...], int]] = field(default_factory=list)  # of each statement: values, line
    mixed: bool = False  # whether it returns a parameter here, and something else there
    empty: bool = False  # whether it returns an empty list somewhere
    made: dict[Path, Value] = field(default_factory=dict)  # fields of an object that it makes and returns
    used: frozenset[int] | None = None  # the parameters of which anything is told here; None until all is told

    def add(self, effect: Effect, chain: Chain, reason: str = "") -> None:
        """Notes an effect; of two ways to it the shorter, and of two as short the same one in every run."""
        known = self.effects.get(effect)
        if known is None or shorter(chain, known):
            self.effects[effect] = chain
            if reason:
                self.reasons[effect] = reason
        elif chain == known and reason:
            self.reasons[effect] = min(reason, self.reasons.get(effect, reason))

    def finish(self) -> None:
        """All is told."""
        self._bound()
        held = [*self.stores.values(), self.returned, *self.made.values()]
        for origin, _, values, spots in self.calls:
            held += [frozenset({origin}), *values, *spots]
        places: list[tuple[Root, Path]] = [(root, path) for _, root, path in self.effects]
        places += [*self.stores, *(place[:2] for place in self.reads)]
        places += [origin[:2] for value in held for origin in value]
        roots = [(root.number, path) for root, path in places if isinstance(root, Parameter)]
        pack = min((number for number, path in roots if path[:1] == (PACK,)), default=MANY)
        self.used = frozenset({number for number, _ in roots} | set(range(pack, MANY)))

    def _bound(self) -> None:
        """The effects in one order. Where there are too many, those of the longest paths give way to one `unknown`
        for each parameter that loses any."""
        order = sorted(self.effects, key=lambda e: (len(e[2]), e[1].number, e[0], tuple(s.text for s in e[2])))
        dropped: dict[Parameter, Chain] = defaultdict(tuple)
        for effect in order[MOST:]:
            root = effect[1]
            if not dropped[root] or shorter(self.effects[effect], dropped[root]):
                dropped[root] = self.effects[effect]
        self.effects = {effect: self.effects[effect] for effect in order[:MOST]}
        for root, chain in dropped.items():
            self.add((UNKNOWN, root, ()), chain, f"it is used in more than {MOST} ways")

    def ignores(self, number: int) -> bool:
        """Whether nothing at all is told of a parameter."""
        return self.used is not None and number not in self.used


def shorter(first: Chain, second: Chain) -> bool:
    """Whether the first chain is the one to report; of two that are as long the same one in every run."""
    return (len(first), first) < (len(second), second)
