"""What is known at one point of a function: variables, what places hold, and the effects so far. No syntax.

An assignment replaces what a variable holds; where branches meet, it holds what it held in either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from schema_patch.schemas.inferred import Chain

from .values import (
    COPY,
    NOTHING,
    THIS,
    WIDEST,
    Origin,
    Path,
    Root,
    Summary,
    Value,
    copied,
    extend,
    is_data,
    loaded,
    plain,
    shorter,
)

MOST = 400  # effects of one function; real ones have few


@dataclass(slots=True)
class Variable:
    """A local variable, or a parameter."""

    root: str
    kind: str = ""  # its type as written
    cls: str = ""  # its class, where the tree defines it
    reference: Value | None = None  # what a reference refers to
    handle: bool = False  # a reference to a tensor, which may be bound to another one: what it holds is in the heap
    const: bool = False
    scalar: bool = False
    plain: bool = False  # neither pointer, reference, auto nor tensor: holds no place of the data that it is read from


@dataclass
class State:
    """The state of one function's reading."""

    path: str
    summary: Summary = field(default_factory=Summary)
    scopes: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    heap: dict[tuple[Root, Path], Value] = field(default_factory=dict)
    classes: dict[Root, str] = field(default_factory=dict)  # of local objects
    by_value: set[int] = field(default_factory=set)  # parameters whose own fields are the callee's
    count: int = 0
    inside: dict[Root, set[Path]] = field(default_factory=dict)  # the paths at which an object ever held something

    def new(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def find(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, name: str, variable: Variable) -> Variable:
        self.scopes[-1][name] = variable
        return variable

    def load(self, places: Iterable[Origin]) -> Value:
        """The places, and what they hold."""
        heap = self.heap
        todo = list(places)
        for root, path, _ in todo:
            if (root, path) in heap:
                break
        else:
            return frozenset(todo)
        result: set[Origin] = set()
        while todo:
            origin = todo.pop()
            if origin in result:
                continue
            result.add(origin)
            if len(result) > WIDEST:
                break
            todo += heap.get(origin[:2], ())
        return frozenset(result)

    def element(self, value: Value, number: int) -> Value:
        """The element of a list or tuple at a number that is known; any of them where it was changed since."""
        name = f".{number}"
        lists = [o[0] for o in value if isinstance(o[0], str) and not o[1] and (o[0], (name,)) in self.heap]
        for root in lists:
            parts = frozenset[Origin]().union(
                *(self.heap.get((root, path), NOTHING) for path in self.inside.get(root, ()) if path[0][1:].isdigit())
            )
            if not self.heap.get((root, ("*",)), NOTHING) <= parts:
                lists = []
                break
        if lists:
            return self.select(((root, (), False) for root in lists), name)
        return self.select(value, name) | self.select(value, "*")

    def elements(self, value: Value) -> list[Value]:
        """The values of a list in braces, or of a tuple; of anything else, none."""
        for root in (o[0] for o in value if isinstance(o[0], str) and o[0].startswith("list") and not o[1]):
            parts: list[Value] = []
            while (root, (f".{len(parts)}",)) in self.heap:
                parts.append(self.load(self.heap[(root, (f".{len(parts)}",))]))
            if parts:
                return parts
        return []

    def blank(self, origin: Origin) -> bool:
        """Whether this is a plain variable that holds nothing known, such as a number."""
        root, path, _ = origin
        return isinstance(root, str) and not path and root[0] in "pv" and not self.heap.get((root, path))

    def select(self, value: Iterable[Origin], selector: str) -> Value:
        """What is found one selector further."""
        return self.load(o for o in (extend(origin, selector) for origin in value) if o is not None)

    def assign(self, variable: Variable, value: Value, chain: Chain) -> None:
        """`variable = value`."""
        if variable.reference is not None:
            self.store(variable.reference, value, chain)
            if variable.handle:
                self.hold((variable.root, ()), copied(value))
            return
        value = copied(value)
        if variable.scalar:
            value = frozenset(o for o in value if o[1] and o[1][-1] in ("@", "&"))
        elif variable.plain:
            value = frozenset(o for o in value if not o[1] or o[1][-1] not in ("*", "#", COPY))
        self.hold((variable.root, ()), value)

    def hold(self, key: tuple[Root, Path], value: Value) -> None:
        value = frozenset(o for o in value if o[:2] != key)
        if len(value) > WIDEST:
            value = frozenset(sorted(value, key=repr)[:WIDEST])
        self.heap[key] = value
        if key[1]:
            self.inside.setdefault(key[0], set()).add(key[1])

    def add(self, key: tuple[Root, Path], value: Value) -> None:
        if value:
            self.hold(key, self.heap.get(key, NOTHING) | value)

    def store(self, places: Iterable[Origin], value: Value, chain: Chain) -> None:
        """`*place = value`: an effect where the place is a parameter's, and something held in any case."""
        for origin in places:
            self.effect("write", origin, chain)
            self.keep(origin, copied(value) - {origin})

    def keep(self, origin: Origin, held: Value) -> None:
        """Something is held at a place; a caller is told where it can see the place."""
        root, path, _ = origin
        if isinstance(root, int):  # what was loaded through a parameter is data, as far as can be told
            held = frozenset(o for o in held if not is_data(plain(o[1])))
        if not held:
            return
        if isinstance(root, int) and loaded(path):  # in the data of a tensor only addresses are looked for
            held = frozenset(o for o in held if o[1][-1:] == ("@",) and not o[2])
        self.add((root, path), held)
        if isinstance(root, int) and self.outlives(root, path):
            exported = frozenset(o for o in self.load(held) if not isinstance(o[0], str) and not is_data(plain(o[1])))
            if exported:
                self.summary.stores[(root, path)] = self.summary.stores.get((root, path), NOTHING) | exported

    def outlives(self, root: int, path: Path) -> bool:
        """Whether a caller sees what is stored at this place."""
        return root == THIS or root not in self.by_value or any(selector in path for selector in "*@#")

    def effect(self, kind: str, origin: Origin, chain: Chain, reason: str = "") -> None:
        root, path, _ = origin
        if COPY in path:
            return
        if kind == "unknown":
            path = path[:3]  # whatever lies behind is as unknown
        if len(self.summary.effects) >= MOST and (kind, root, path) not in self.summary.effects:
            return
        if isinstance(root, int) and (kind == "unknown" or self.outlives(root, path)):
            key = (kind, root, path)
            known = self.summary.effects.get(key)
            if known is None or shorter(chain, known):
                self.summary.effects[key] = chain
                if reason:
                    self.summary.reasons[key] = reason
            elif chain == known and reason:
                self.summary.reasons[key] = min(reason, self.summary.reasons.get(key, reason))

    def read(self, value: Iterable[Origin]) -> None:
        """Data is read at these places, or behind them."""
        for root, path, _ in value:
            if isinstance(root, int):
                self.summary.reads.add((root, plain(path[:4])))

    def read_data(self, value: Iterable[Origin]) -> None:
        """The data of these tensors, or what these pointers lead to, is read."""
        self.read((root, path if "@" in path or "#" in path else (*path, "@"), const) for root, path, const in value)

    def merge(self, other: dict[tuple[Root, Path], Value]) -> None:
        """Two branches meet: what a place holds is what it held in either."""
        heap = self.heap
        for key, value in other.items():
            mine = heap.get(key)
            if mine is None:
                heap[key] = value
            elif mine is not value and mine != value:
                self.hold(key, mine | value)

    def reachable(self, value: Value) -> Value:
        """What a callee can reach from a value: through local objects, what stands behind each place of theirs."""
        result = set(self.load(value))
        seen: set[tuple[Root, Path]] = set()
        todo = [o[:2] for o in result if isinstance(o[0], str)]
        while todo:
            place = root, path = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            behind = [(root, path[:-1], False)] if path[-1:] == ("&",) else []
            for inner in self.inside.get(root, ()):
                if inner[: len(path)] == path:
                    behind += self.heap.get((root, inner), ())
            new = set(self.load(behind)) - result
            result |= new
            todo += [o[:2] for o in new if isinstance(o[0], str)]
        return frozenset(result)
