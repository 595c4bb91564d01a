"""What an expression can stand for: places, each a root and the selectors that lead from it. No syntax.

`out.data_ptr() + 1` of parameter 0 is the place `0 @`, and storing through it writes `0 @ *`. Roots are compared by
identity where one object stands for one thing; what must not depend on the order of a set goes through `ordered`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import TypeAlias

from schema_patch.inference.index.constants import Constants
from schema_patch.inference.index.scan import Function

DEEPEST = 7  # selectors of a path
WIDEST = 48  # places that one value stands for


@dataclass(frozen=True, eq=False, slots=True)
class Selector:
    """One step from a place to the next."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Field(Selector):
    """`.name`"""


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Element(Selector):
    """The element of a list or tuple at a number that is known."""


DEREF = Selector("*")  # what a pointer leads to; any element
ADDRESS = Selector("&")
DATA = Selector("@")  # the data pointer of a tensor
ACCESSOR = Selector("#")  # an accessor of its data
PERHAPS = Selector("~")  # perhaps a copy
DENSE = Selector("+")  # a copy unless it is contiguous
COPY = Selector("=")  # a copy of what was read there: its fields are its own, what it points to is not
PACK = Selector("...")  # all arguments from this parameter on
RESULT = Selector("result")  # what a lambda returns


@cache
def element(number: int) -> Element:
    """The one selector of this element."""
    return Element(f".{number}")


PAIR = {"first": element(0), "second": element(1)}


@cache
def field_of(name: str) -> Selector:
    """The one selector of this field; the fields of a pair are its elements."""
    return PAIR.get(name) or Field(f".{name}")


@dataclass(frozen=True, eq=False, slots=True)
class Parameter:
    """What the caller hands in at a position; THIS is the object of a method."""

    number: int


@cache
def parameter(number: int) -> Parameter:
    """The one root of this position."""
    return Parameter(number)


THIS = parameter(-1)
ARGUMENT, VARIABLE, ARRAY, STATIC = "argument", "variable", "array", "static"  # what a name of the function stands for
LIST, OBJECT, TENSOR, BLOB, MADE = "list", "object", "tensor", "blob", "made"  # objects that it makes
EMPTY = "empty"  # a constant list that has no elements
MIXED = "mixed"  # a new tensor, which a call gives back in place of an argument


@dataclass(frozen=True, eq=False, slots=True)
class Local:
    """A variable or an object of the function."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Callee:
    """A function as a value, with what is known of its template parameters."""

    function: Function
    constants: Constants


@dataclass(frozen=True, slots=True)
class Closure:
    """A lambda, by where it begins."""

    start: int


@dataclass(frozen=True, slots=True)
class Script:
    """A kernel in a Python file: the last parts of the file's path, and its name."""

    file: tuple[str, ...]
    name: str


Root: TypeAlias = Parameter | Local | Callee | Closure | Script
Path: TypeAlias = tuple[Selector, ...]
Origin: TypeAlias = tuple[Root, Path, bool]  # flag: reached as const, so that a callee not seen cannot write there
Value: TypeAlias = frozenset[Origin]
NOTHING: Value = frozenset()


def at(root: Root, *path: Selector) -> Value:
    """One place."""
    return frozenset({(root, path, False)})


def union(values: Iterable[Value]) -> Value:
    return NOTHING.union(*values)


def ordered(value: Iterable[Origin]) -> list[Origin]:
    """The places in an order that is the same in every run."""
    found = list(value)
    return sorted(found, key=_order) if len(found) > 1 else found


def _order(origin: Origin) -> tuple[int, int, str, tuple[str, ...], bool, str]:
    root, path, const = origin
    texts = tuple(selector.text for selector in path)
    if isinstance(root, Parameter):
        return 0, root.number, "", texts, const, ""
    if isinstance(root, Local):
        return 1, root.number, root.kind, texts, const, ""
    if isinstance(root, Callee):
        return 2, root.function.body[0], root.function.path, texts, const, repr(root.constants)
    if isinstance(root, Closure):
        return 3, root.start, "", texts, const, ""
    return 4, 0, root.name, texts, const, "/".join(root.file)


def extend(origin: Origin, selector: Selector) -> Origin | None:
    """One selector further; None where the path would grow without end."""
    root, path, const = origin
    if path:
        last = path[-1]
        if last is ADDRESS and selector is DEREF:
            return root, path[:-1], const
        pointer = _pointer(path) if selector is ADDRESS else path
        if pointer is not path and not is_data(pointer):
            return root, pointer, const
        if selector is DEREF and last is DEREF and ACCESSOR in path:  # as many subscripts as the tensor has dimensions
            return origin
        if COPY in path and selector in (DEREF, DATA, ACCESSOR):
            path = tuple(s for s in path if s is not COPY)
        if last in (PERHAPS, selector) and selector in (PERHAPS, DENSE):
            return origin
    if len(path) >= DEEPEST:
        return None
    return root, (*path, selector), const


def _pointer(path: Path) -> Path:
    """What `&p[i]` is, and `&p[i].x`, `&p[i].array[j]`, where `p[i]` is data: as good as `p`; else the path itself."""
    end = len(path)
    if in_data(path):
        end -= path[-1] is DEREF and isinstance(path[-2], Field)
        while isinstance(path[end - 1], Field | Element):
            end -= 1
    return path[: end - 1] if path[end - 1] is DEREF else path


def select(value: Iterable[Origin], selector: Selector) -> Value:
    return frozenset(o for o in (extend(origin, selector) for origin in value) if o is not None)


def rooted(value: Iterable[Origin], kinds: type | UnionType) -> Value:
    """Those of the places whose roots are of these kinds."""
    return frozenset(o for o in value if isinstance(o[0], kinds))


def pointers(value: Iterable[Origin], *, to_write: bool = False) -> Value:
    """The pointers to the data of tensors among them; `to_write`: without those to const."""
    return frozenset(o for o in value if o[1][-1:] == (DATA,) and not (to_write and o[2]))


def addresses(value: Iterable[Origin]) -> Value:
    """The places without those in memory, which are what was read there."""
    return frozenset(o for o in value if not is_data(plain(o[1])))


def either(value: Value) -> Value:
    """An element of a list: where it is a tensor of the caller or a new one, the caller's is one that is perhaps left
    alone, because the elements that are written may be the others."""
    new = frozenset(o for o in value if isinstance(o[0], Local) and o[0].kind == TENSOR)
    return new | select(value - new, PERHAPS) if new else value


def copied(value: Value) -> Value:
    """The value after an assignment: what was read from memory is a copy now."""
    if not any(DEREF in path for _, path, _ in value):
        return value
    return frozenset(
        (root, (*path, COPY), const) if is_data(path) and isinstance(root, Parameter) else (root, path, const)
        for root, path, const in value
    )


def plain(path: Path) -> Path:
    """The path without the marks of copies."""
    return tuple(s for s in path if s is not COPY) if COPY in path else path


def in_data(path: Path) -> bool:
    """Whether this leads through a tensor to its data."""
    return DATA in path or ACCESSOR in path


def is_data(path: Path) -> bool:
    """Whether this is a place in memory, or a field of one, and no address."""
    for selector in reversed(path):
        if selector is DEREF:
            return True
        if not isinstance(selector, Field | Element):
            return False
    return False


def is_old(root: Root) -> bool:
    """Whether a returned value is none that the call made."""
    return isinstance(root, Parameter) or (isinstance(root, Local) and root.kind in (STATIC, MIXED))


def constant(value: Value) -> Value:
    """The same places, reached as const."""
    return frozenset((root, path, True) for root, path, _ in value)


def mutable(value: Value) -> Value:
    return frozenset((root, path, False) for root, path, _ in value)


def loaded(path: Path) -> bool:
    """Whether this is what was read from a tensor's data, and so no place in it."""
    return any(a is DATA and b is DEREF for a, b in itertools.pairwise(path)) or ACCESSOR in path[:-1]
