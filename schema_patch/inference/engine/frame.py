"""One function as every part of its reading sees it: its syntax, its state, the tree around it. Evaluates nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from tree_sitter import Node

from schema_patch.cpp.syntax import first, is_a
from schema_patch.inference.domain.models import Models
from schema_patch.inference.domain.state import State, Variable
from schema_patch.inference.domain.summary import Summary
from schema_patch.inference.domain.values import DEREF, NOTHING, Callee, Field, Origin, Parameter, Value, in_data
from schema_patch.inference.index.brackets import split
from schema_patch.inference.index.constants import Constants, decide, given
from schema_patch.inference.index.index import Index
from schema_patch.inference.index.scan import Function
from schema_patch.inference.index.syntax import Body, read_parameters
from schema_patch.schemas.inferred import Chain

NAME = re.compile(r"[A-Za-z_]\w*")
TENSOR_LIKE = re.compile(r"\b(?:Tensor|TensorBase|TensorList|TensorOptions)\b")
BOXED = re.compile(r"\bStableIValue\s*\*")  # the stack of a boxed function: its elements are the arguments
LISTED = re.compile(r"\b(?:TensorList|ITensorListRef|vector|List|ArrayRef|array|span|tuple|initializer_list)\b")
FUNCTION = re.compile(r"&?\s*(?:\w+::)*([A-Za-z_]\w*)\s*(?:<.*>)?", re.DOTALL)
BOOLS = frozenset({"bool", "const bool", "bool const"})
# How a name is given another value, hands out where it is, or is another variable's.
CHANGES = (
    r"\b%s\s*(?:=[^=]|[|&^]=)",
    r">>\s*%s\b",
    r"(?<!&)&\s*%s\b",
    r"(?:(?<!&)&|\bauto\s*&&)\s*\w+\s*[=({]\s*%s\s*[;)}]",
    r"\b(?:swap|exchange|tie|ref)\s*\([^()]*\b%s\b",
    r"\b(?:bool|auto)\b[\s&*]*(?:\[[^\]]*)?\b%s\b",
)
MOST_OVERLOADS = 256  # definitions of one name that are looked into
Summarise = Callable[[Function, Constants], Summary]
Kernels = Callable[[str], list[Function]]  # the implementations of an operator, by `ns::op`


@lru_cache(maxsize=65536)
def flags(declared: str, body: str) -> tuple[tuple[int, str], ...]:
    """The places and names of the declared parameters that are true or false, which the function uses and does not
    change by any form of CHANGES."""
    places = [(n, p.name) for n, p in enumerate(read_parameters(declared)) if p.name and p.type in BOOLS]
    kept = [(n, name) for n, name in places if not any(re.search(way % name, body) for way in CHANGES)]
    return tuple((n, name) for n, name in kept if re.search(rf"\b{name}\b", body))


@dataclass
class FunctionFrame:
    """What is fixed while one function is read, and the state that is not."""

    body: Body
    index: Index
    models: Models
    summary_of: Summarise
    kernels: Kernels = lambda _: []
    constants: dict[str, bool | str] = field(default_factory=dict)  # template parameters of which the value is known
    state: State = field(default_factory=State)
    types: dict[str, str] = field(default_factory=dict)  # `using X = Y` within it; "" for a template's own types
    values: dict[str, Callable[[Node], Value]] = field(default_factory=dict)  # who evaluates, by kind of expression
    statements: dict[str, Callable[[Node], None]] = field(default_factory=dict)  # who executes, by kind of statement

    def __post_init__(self) -> None:
        self.function = self.body.function
        self.path = self.function.path
        self.text = self.body.text
        self.boxed = any(BOXED.search(declared.type) for declared in self.body.parameters)
        self.types |= dict.fromkeys(self.body.template_types, "")
        self.places: dict[int, Chain] = {}  # by where nodes begin; each is asked for again and again

    def variable(self, node: Node | None) -> Variable | None:
        """The variable that an expression is the name of."""
        return self.state.names.get(self.text(node)) if node and node.type == "identifier" else None

    def here(self, node: Node) -> Chain:
        start = node.start_byte
        if start not in self.places:
            self.places[start] = ((self.path, self.body.line(node)),)
        return self.places[start]

    def literal(self, node: Node | None) -> str:
        """What a literal says, which the parser does not see; empty where a macro made it."""
        if node is None:
            return ""
        start = self.body.expanded.offset(node.start_byte)
        raw = self.index.text(self.path).data[start : start + node.end_byte - node.start_byte]
        return raw.decode("latin-1") if raw[:1] == b'"' else ""

    def names(self, node: Node | None) -> tuple[str, ...]:
        """`a::b<T>::c` as names."""
        if node is None:
            return ()
        if node.type == "qualified_identifier":
            return self.names(node.child_by_field_name("scope")) + self.names(node.child_by_field_name("name"))
        if node.type in ("template_function", "template_type", "template_method", "dependent_name"):
            return self.names(node.child_by_field_name("name") or first(node))
        return (self.text(node).strip(),)

    def template_arguments(self, node: Node | None) -> list[str]:
        """The text of the template arguments in `f<a, b>` and `n::f<a, b>`."""
        while is_a(node, "qualified_identifier"):
            node = node.child_by_field_name("name")
        return split(self.text(node.child_by_field_name("arguments"))[1:-1]) if is_a(node, "template_function") else []

    def functions(self, name: str, qualifiers: tuple[str, ...] = (), arguments: Sequence[str] = ()) -> Value:
        """A name that is a function's, as a value."""
        meant = self.constants.get(name)
        if isinstance(meant, str) and not qualifiers:  # a template's parameter that is a function
            plain, _, rest = meant.strip("& ").partition("<")
            *qualifiers_, name = plain.split("::")
            qualifiers, arguments = tuple(qualifiers_), split(rest.rstrip("> "))
        if name not in self.index.functions:
            return NOTHING
        found = self.index.resolve(name, qualifiers, -1, self.function)
        return frozenset((Callee(f, self.constants_of(f, arguments)), (), False) for f in found[:MOST_OVERLOADS])

    def flags_of(self, function: Function, items: Sequence[Node]) -> Constants:
        """What is known of a function's parameters that are true or false, where it is called with these arguments."""
        declared = self.index.signature(function)[1]
        places = flags(declared, self.index.written(function)) if items and "bool" in declared else ()
        if places and self.index.hands_out_flags(function):
            return ()
        given = [
            (name, decide(self.text(items[place]), self.constants)) for place, name in places if place < len(items)
        ]
        packed = given and any(item.type == "parameter_pack_expansion" for item in items)
        return tuple((name, value) for name, value in given if value is not None and not packed)

    def constants_of(self, function: Function, arguments: Sequence[str]) -> Constants:
        """What is known of a function's template parameters, where it is named with these arguments."""
        head = self.index.signature(function)[0] if arguments else ""
        return given(head, arguments, self.constants, self.is_function) if arguments else ()

    def is_function(self, text: str) -> bool:
        """Whether a template's argument names a function of the tree."""
        found = FUNCTION.fullmatch(text.strip())
        return found is not None and found[1] in self.index.functions and found[1] not in self.index.classes

    def methods(self, cls: str, name: str, count: int) -> list[Function]:
        """The definitions of a method of a class, as seen from here."""
        return self.index.methods(cls, name, count, self.path)

    def is_element(self, origin: Origin) -> bool:
        """Whether a place is one tensor, and no list of them: `x[i] = y` writes its data."""
        root, path, _ = origin
        if self.boxed or not self.is_tensor(origin) or not isinstance(root, Parameter):
            return False
        if any(isinstance(selector, Field) for selector in path):  # of a class of the tree's own
            return False
        return DEREF in path or not LISTED.search(self.body.parameters[root.number].type)

    def is_tensor(self, origin: Origin) -> bool:
        """Whether a place is a tensor that the function was given, by what its parameters are declared as."""
        root, path, _ = origin
        if not isinstance(root, Parameter) or root.number < 0 or in_data(path):
            return False
        if self.boxed:
            return True
        kind = self.body.parameters[root.number].type if root.number < len(self.body.parameters) else ""
        return "*" not in kind and bool(TENSOR_LIKE.search(kind))


@dataclass(eq=False)
class FunctionReader:
    """One part of the reading of a function, with the others that it knows. What it calls `of_X` evaluates expressions
    of kind X, and `do_X` executes statements."""

    kinds: ClassVar[list[str]] = []
    frame: FunctionFrame

    def __init_subclass__(cls) -> None:
        cls.kinds = [name for name in vars(cls) if name.startswith(("of_", "do_"))]

    def __post_init__(self) -> None:
        self.state, self.models = self.frame.state, self.frame.models
        for name in self.kinds:
            table = self.frame.values if name.startswith("of_") else self.frame.statements
            table[name[3:]] = getattr(self, name)
