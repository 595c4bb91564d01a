"""What is known at one point of a function: variables, what places hold, and the effects so far. No syntax.

An assignment replaces what a variable holds; where branches meet, it holds what it held in either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from schema_patch.schemas.inferred import Chain

from . import values
from .summary import TAKEN, UNKNOWN, WRITE, Summary
from .values import (
    ACCESSOR,
    ADDRESS,
    ARGUMENT,
    COPY,
    DATA,
    DEEPEST,
    DEREF,
    LIST,
    NOTHING,
    THIS,
    VARIABLE,
    WIDEST,
    Callee,
    Element,
    Local,
    Origin,
    Parameter,
    Path,
    Root,
    Selector,
    Value,
    addresses,
    at,
    copied,
    element,
    extend,
    in_data,
    loaded,
    ordered,
    plain,
    pointers,
)

Place = tuple[Root, Path]
CROWD = at(Local("crowd", 0))  # what a place holds at which more met than is followed
Item = tuple[str, Value]  # of a list in braces: the field that a designator names, or ""


def wide(value: Collection[Origin]) -> bool:
    """Whether a value stands for more places than are followed; functions do not count."""
    return len(value) > WIDEST and sum(not isinstance(root, Callee) for root, _, _ in value) > WIDEST


@dataclass(slots=True)
class Variable:
    """A local variable, or a parameter."""

    root: Local
    kind: str = ""  # its type as written
    cls: str = ""  # its class, where the tree defines it
    reference: Value | None = None  # what a reference refers to
    handle: bool = False  # a reference to a tensor, which may be bound to another one: what it holds is in the heap
    const: bool = False
    scalar: bool = False


@dataclass
class State:
    """The state of one function's reading."""

    summary: Summary = field(default_factory=Summary)
    names: dict[str, Variable] = field(default_factory=dict)  # those that are seen here
    hidden: list[dict[str, Variable | None]] = field(default_factory=lambda: [{}])  # of each scope, around it
    heap: dict[Place, Value] = field(default_factory=dict)
    classes: dict[Root, str] = field(default_factory=dict)  # of local objects
    by_value: set[Parameter] = field(default_factory=set)  # parameters whose own fields are the callee's
    count: int = 0
    assigned: dict[Root, int] = field(default_factory=dict)  # how often each variable was
    inside: dict[Root, set[Path]] = field(default_factory=dict)  # the paths at which an object ever held something
    tensors: set[Parameter] = field(default_factory=set)  # parameters that are tensors, optional ones or lists of them
    plain: set[Root] = field(default_factory=set)
    """Variables and arrays of neither pointers, references, auto nor tensors: what they hold is no place of the data
    that it was read from."""
    absent: frozenset[Parameter] = frozenset()  # optional parameters that are empty here: nothing happens to them
    leaving: dict[Place, Value] = field(default_factory=dict)  # what objects held where they were returned
    now: Chain = ()  # the statement at hand

    def new(self, kind: str = VARIABLE) -> Local:
        self.count += 1
        return Local(kind, self.count)

    def make(self, kind: str) -> Value:
        """A new object, as a value."""
        return at(self.new(kind))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is declared within is not seen behind it."""
        self.hidden.append({})
        yield
        for name, before in self.hidden.pop().items():
            if before is None:
                del self.names[name]
            else:
                self.names[name] = before

    def declare(self, name: str, variable: Variable) -> Variable:
        self.hidden[-1].setdefault(name, self.names.get(name))
        self.names[name] = variable
        return variable

    @contextmanager
    def without(self, absent: frozenset[Parameter]) -> Iterator[None]:
        """What is reached only where these optional parameters are empty."""
        before, self.absent = self.absent, self.absent | absent
        yield
        self.absent = before

    def class_in(self, value: Iterable[Origin]) -> str:
        """The class of the first of these objects that has one."""
        return next((self.classes[o[0]] for o in ordered(value) if not o[1] and o[0] in self.classes), "")

    def as_const(self, value: Value) -> Value:
        """The places reached as const from here on: what was asked for to write through is only read then."""
        for root, path, const in value:
            if not const and isinstance(root, Parameter) and (TAKEN, root, path) in self.summary.effects:
                self.read([(root, (*path, DEREF), const)])
        return values.constant(value)

    def load(self, places: Iterable[Origin]) -> Value:
        """The places, and what they hold."""
        heap = self.heap
        start = frozenset(places)
        for root, path, _ in start:
            if (root, path) in heap:
                break
        else:
            return self.too_wide(start) if wide(start) else start
        result: set[Origin] = set()
        todo = list(start)
        while todo:
            origin = todo.pop()
            if origin not in result:
                result.add(origin)
                todo += heap.get(origin[:2], ())
        return self.too_wide(result, start) if wide(result) else frozenset(result)

    def too_wide(self, value: Iterable[Origin], start: Value = NOTHING) -> Value:
        """More places than are followed: each is unknown. What is left is where they were found."""
        self.give_up(value, f"one of more than {WIDEST} places that meet")
        return NOTHING if wide(start) else start

    def give_up(self, value: Iterable[Origin], reason: str, chain: Chain = ()) -> None:
        """What these places lead to is not followed any further, and may be written, there or at the statement at
        hand."""
        for origin in self.reachable(value):
            if isinstance(origin[0], Parameter) and not (origin[2] or loaded(origin[1])):
                self.effect(UNKNOWN, origin, chain or self.now, reason)
            else:
                self.read_data([origin])

    def element(self, value: Value, number: int) -> Value:
        """The element of a list or tuple at a number that is known; any of them where it was changed since."""
        name = element(number)
        lists = [o[0] for o in value if isinstance(o[0], Local) and not o[1] and (o[0], (name,)) in self.heap]
        for root in lists:
            places = [(root, path) for path in self.inside.get(root, ()) if isinstance(path[0], Element)]
            parts = values.union(self.heap.get(place, NOTHING) for place in places)
            if not self.heap.get((root, (DEREF,)), NOTHING) <= parts:
                lists = []
                break
        if lists:
            return self.select(((root, (), False) for root in lists), name)
        return self.select(value, name) | self.select(value, DEREF)

    def elements(self, value: Value) -> list[Value]:
        """The values of a list in braces, or of a tuple; of anything else, none."""
        for root in (o[0] for o in ordered(value) if isinstance(o[0], Local) and o[0].kind == LIST and not o[1]):
            parts: list[Value] = []
            while (root, (element(len(parts)),)) in self.heap:
                parts.append(self.load(self.heap[root, (element(len(parts)),)]))
            if parts:
                return parts
        return []

    def fill(self, root: Local, items: Iterable[Item], names: Sequence[str] = ()) -> Value:
        """The elements of an object, which are its fields by these names too; gives the object."""
        for number, (designator, value) in enumerate(items):
            self.any_element(root, value)
            if designator:
                self.add((root, (values.field_of(designator),)), value)
                continue
            self.heap.setdefault((root, (element(number),)), NOTHING)
            self.add((root, (element(number),)), value)
            if number < len(names):
                self.add((root, (values.field_of(names[number]),)), value)
        return at(root)

    def any_element(self, root: Local, value: Value) -> None:
        """A value among the elements of an object; of a list in a list its own elements, so that many are one place."""
        lists = frozenset(o for o in value if self.is_list(o))
        self.add((root, (DEREF,)), value - lists)
        for inner, _, _ in ordered(lists):
            for path in list(self.inside.get(inner, ())):
                if len(path) < DEEPEST:
                    self.add((root, (DEREF, *path)), self.heap.get((inner, path), NOTHING))

    def is_list(self, origin: Origin) -> bool:
        """Whether this is a list in braces, of no class that is known."""
        root, path, _ = origin
        return isinstance(root, Local) and root.kind == LIST and not path and root not in self.classes

    def blank(self, origin: Origin) -> bool:
        """Whether this is a plain variable that holds nothing known, such as a number."""
        root, path, _ = origin
        named = isinstance(root, Local) and root.kind in (ARGUMENT, VARIABLE)
        return named and not path and not self.heap.get((root, path))

    def select(self, value: Iterable[Origin], selector: Selector) -> Value:
        """What is found one selector further."""
        found = []
        for origin in value:
            longer = extend(origin, selector)
            if longer is not None:
                found.append(longer)
            else:
                self.give_up([origin], f"reached through more than {DEEPEST} steps")
        return self.load(found)

    def copied(self, value: Value) -> Value:
        """The value after an assignment: what was read from memory is a copy, a tensor out of a list or optional is
        not."""
        handles = frozenset(o for o in value if o[0] in self.tensors and not in_data(o[1]))
        return copied(value - handles) | handles

    def assign(self, variable: Variable, value: Value, chain: Chain) -> None:
        """`variable = value`."""
        self.assigned[variable.root] = self.assigned.get(variable.root, 0) + 1
        if variable.reference is not None:
            self.store(variable.reference, value, chain)
            if variable.handle:
                self.hold((variable.root, ()), self.copied(value))
            return
        value = self.copied(value)
        if variable.scalar:
            value = frozenset(o for o in value if o[1] and o[1][-1] in (DATA, ADDRESS))
        self.hold((variable.root, ()), self.as_held(variable.root, value))

    def as_held(self, root: Root, value: Value) -> Value:
        """What a variable or an array keeps of a value."""
        if root not in self.plain:
            return value
        ends = (DEREF, ACCESSOR, COPY)
        return frozenset(o for o in value if not (o[1] and o[1][-1] in ends and isinstance(o[0], Parameter)))

    def hold(self, key: Place, value: Value) -> None:
        value = frozenset(o for o in value if o[:2] != key)
        if wide(value) or not CROWD.isdisjoint(value):
            self.too_wide(value)
            value = CROWD
        self.heap[key] = value
        if key[1]:
            self.inside.setdefault(key[0], set()).add(key[1])

    def add(self, key: Place, value: Value) -> None:
        if value:
            self.hold(key, self.heap.get(key, NOTHING) | value)

    def store(self, places: Iterable[Origin], value: Value, chain: Chain) -> None:
        """`*place = value`: an effect where the place is a parameter's, and something held in any case."""
        held = self.copied(value)
        for origin in places:
            self.effect(WRITE, origin, chain)
            # What is reached as const and stored to is a `const T**`: what it leads to is const.
            self.keep(origin, (values.constant(held) if origin[2] else held) - {origin})

    def keep(self, origin: Origin, held: Value) -> None:
        """Something is held at a place; a caller is told where it can see the place."""
        root, path, _ = origin
        if not isinstance(root, Parameter):
            self.add((root, path), self.as_held(root, held) if path in ((), (DEREF,)) else held)
            return
        # What was loaded through a parameter is data, as far as can be told.
        held = addresses(held)
        if held and loaded(path):  # in the data of a tensor only addresses are looked for
            held = pointers(held, to_write=True)
        self.add((root, path), held)
        if held and self.outlives(root, path):
            exported = addresses(o for o in self.load(held) if not isinstance(o[0], Local))
            if exported:
                self.summary.stores[root, path] = self.summary.stores.get((root, path), NOTHING) | exported

    def outlives(self, root: Parameter, path: Path) -> bool:
        """Whether a caller sees what is stored at this place."""
        return root is THIS or root not in self.by_value or DEREF in path or in_data(path)

    def effect(self, kind: str, origin: Origin, chain: Chain, reason: str = "") -> None:
        root, path, _ = origin
        if COPY in path or root in self.absent:
            return
        if kind == UNKNOWN:
            path = path[:3]  # whatever lies behind is as unknown
        if isinstance(root, Parameter) and (kind == UNKNOWN or self.outlives(root, path)):
            self.summary.add((kind, root, path), chain, reason)

    def read(self, value: Iterable[Origin]) -> None:
        """Data is read at these places, or behind them."""
        for root, path, const in value:
            if isinstance(root, Parameter):
                self.summary.reads.add((root, plain(path[:4]), const))

    def read_data(self, value: Iterable[Origin]) -> None:
        """The data of these tensors, or what these pointers lead to, is read."""
        self.read((root, path if in_data(path) else (*path, DATA), const) for root, path, const in value)

    def changed(self, before: Mapping[Place, Value], count: int) -> bool:
        """Whether anything that was there before holds something else now; `count`: how many objects there were."""
        return any(
            value is not before.get(place) and value != before.get(place)
            for place, value in self.heap.items()
            if not (isinstance(place[0], Local) and place[0].number > count)
        )

    def merge(self, other: dict[Place, Value]) -> None:
        """Two branches meet: what a place holds is what it held in either."""
        heap = self.heap
        for key, value in other.items():
            mine = heap.get(key)
            if mine is None:
                heap[key] = value
            elif mine is not value and mine != value:
                self.hold(key, mine | value)

    def leave(self, value: Value) -> None:
        """A value is returned: what its objects hold here is what a caller finds, though the branch ends."""
        todo = [root for root, _, _ in value if isinstance(root, Local)]
        seen = set(todo)
        while todo:
            root = todo.pop()
            for path in self.inside.get(root, ()):
                held = self.heap.get((root, path), NOTHING)
                self.leaving[root, path] = self.leaving.get((root, path), NOTHING) | held
                further = {inner for inner, _, _ in held if isinstance(inner, Local)} - seen
                seen |= further
                todo += further

    def reachable(self, value: Iterable[Origin]) -> Value:
        """What a callee can reach from a value: through local objects, what stands behind each place of theirs."""
        result: set[Origin] = set()
        seen: set[Place] = set()
        todo = list(value)
        while todo:
            origin = todo.pop()
            if origin in result:
                continue
            result.add(origin)
            place = root, path = origin[:2]
            todo += self.heap.get(place, ())
            if isinstance(root, Local) and place not in seen:
                seen.add(place)
                if path[-1:] == (ADDRESS,):
                    todo.append((root, path[:-1], False))
                for inner in self.inside.get(root, ()):
                    if inner[: len(path)] == path:
                        todo += self.heap.get((root, inner), ())
        return frozenset(result)
