"""What an expression can stand for, and what calling a function does: access paths and summaries. No syntax.

An Origin is a place: a root (a parameter's number, a local object, a function) and the selectors that lead from it:
`.field`, `*` (dereference or subscript), `&` (address of), `@` (the data pointer of a tensor), `#` (an accessor of its
data), `~` (perhaps a copy), `+` (a copy unless it is contiguous), `=` (a copy of what was read), `...` (any argument of
a pack). `out.data_ptr() + 1` of parameter 0 is `(0, ("@",))`, and storing through it writes `@*`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from schema_patch.schemas.inferred import Chain

Root = Any  # int: parameter; str: local object; a tuple ("fn", Function, Constants) or ("lambda", node id)
Path = tuple[str, ...]
Origin = tuple[Root, Path, bool]  # the flag: reached as const, so that a callee that is not seen cannot write there
Value = frozenset[Origin]

NOTHING: Value = frozenset()
THIS = -1
COPY = "="  # a copy of what was read there: its fields are its own, what it points to is not
MIXED = "mixed"  # begins the root that stands for a new tensor, which a call gives back in place of an argument
PACK = "..."  # all arguments from this parameter on
DEEPEST = 7
WIDEST = 48
MANY = 256  # more arguments than a function has


@dataclass(slots=True)
class Summary:
    """What a call does: effects on what its parameters lead to, what it stores where, what it returns."""

    effects: dict[tuple[str, Root, Path], Chain] = field(default_factory=dict)
    """By kind: "write"; "unknown", the reason is beside it; "lost", a pointer of which nothing more is seen."""
    reasons: dict[tuple[str, Root, Path], str] = field(default_factory=dict)
    reads: set[tuple[Root, Path]] = field(default_factory=set)  # where data is seen to be read
    stores: dict[tuple[Root, Path], Value] = field(default_factory=dict)
    calls: dict[tuple[Origin, str, tuple[Value, ...], tuple[Value, ...]], None] = field(default_factory=dict)
    """Calls of what a parameter is, or of its method: its name, the arguments' values and places."""
    returned: Value = NOTHING
    returns: list[tuple[tuple[Value, ...], int]] = field(default_factory=list)  # of each statement: values, line
    mixed: bool = False  # whether it returns a parameter here, and something else there
    made: dict[Path, Value] = field(default_factory=dict)  # fields of an object that it makes and returns
    used: frozenset[int] | None = None  # the parameters of which anything is told here; None until all is told

    def finish(self) -> None:
        """All is told."""
        held = [*self.stores.values(), self.returned, *self.made.values()]
        for origin, _, values, spots in self.calls:
            held += [frozenset({origin}), *values, *spots]
        places = [key[1:] for key in self.effects] + [*self.reads, *self.stores]
        places += [origin[:2] for value in held for origin in value]
        pack = min((root for root, path in places if path[:1] == (PACK,)), default=MANY)
        self.used = frozenset({root for root, _ in places if isinstance(root, int)} | set(range(pack, MANY)))

    def ignores(self, number: int) -> bool:
        """Whether nothing at all is told of a parameter."""
        return self.used is not None and number not in self.used


def extend(origin: Origin, selector: str) -> Origin | None:
    """One selector further; None where the path would grow without end."""
    root, path, const = origin
    if path:
        last = path[-1]
        if last == "&" and selector == "*":
            return root, path[:-1], const
        if selector == "*" and last == "*" and "#" in path:  # as many subscripts as the tensor has dimensions
            return origin
        if selector in ("*", "@", "#") and COPY in path:
            path = tuple(s for s in path if s != COPY)
        if selector in ("~", "+") and last in ("~", selector):
            return origin
    if len(path) >= DEEPEST:
        return None
    return root, (*path, selector), const


def shorter(first: Chain, second: Chain) -> bool:
    """Whether the first chain is the one to report; of two that are as long the same one in every run."""
    return (len(first), first) < (len(second), second)


def select(value: Iterable[Origin], selector: str) -> Value:
    return frozenset(o for o in (extend(origin, selector) for origin in value) if o is not None)


def either(value: Value) -> Value:
    """An element of a list: where it is a tensor of the caller or a new one, the caller's is one that is perhaps left
    alone, because the elements that are written may be the others."""
    new = frozenset(o for o in value if isinstance(o[0], str) and o[0].startswith("tensor"))
    return new | select(value - new, "~") if new else value


def copied(value: Value) -> Value:
    """The value after an assignment: what was read from memory is a copy now."""
    if not any("*" in path for _, path, _ in value):
        return value
    return frozenset(
        (root, (*path, COPY), const) if is_data(path) and isinstance(root, int) else (root, path, const)
        for root, path, const in value
    )


def plain(path: Path) -> Path:
    """The path without the marks of copies."""
    return tuple(s for s in path if s != COPY) if COPY in path else path


def is_data(path: Path) -> bool:
    """Whether this is a place in memory, or a field of one, and no address."""
    for selector in reversed(path):
        if selector == "*":
            return True
        if not selector.startswith(".") or selector == PACK:
            return False
    return False


def constant(value: Value) -> Value:
    """The same places, reached as const."""
    return frozenset((root, path, True) for root, path, _ in value)


def mutable(value: Value) -> Value:
    return frozenset((root, path, False) for root, path, _ in value)


def loaded(path: Path) -> bool:
    """Whether this is what was read from a tensor's data, and so no place in it."""
    return any(a == "@" and b == "*" for a, b in itertools.pairwise(path)) or "#" in path[:-1]
