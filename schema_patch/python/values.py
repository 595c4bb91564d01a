"""What a Python expression can stand for, and what evaluating it writes: which parameter's memory, and how surely.

Knows torch's names for what is a view, a copy or written in place; calls are in calling.py, statements in flow.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from schema_patch.schemas import aten
from schema_patch.schemas.inferred import Native

from .modules import Modules, PythonModule

VIEWS = aten.VIEWS | frozenset(
    "H T __array__ __array_interface__ __cuda_array_interface__ __getitem__ data_ptr flat from_dlpack "
    "from_numpy frombuffer numpy untyped_storage Tensor Variable Parameter Buffer".split()
)
# A copy, unless nothing would change.
PERHAPS = aten.PERHAPS | frozenset(
    "contiguous reshape reshape_as flatten ravel type float half bfloat16 double int long as_tensor asarray "
    "resolve_conj resolve_neg expand_contiguous getattr".split()
)
IN_PLACE = re.compile(r"__(?:i(?:add|sub|mul|truediv|floordiv|mod|pow|and|or|xor|lshift|rshift|matmul)|setitem)__")
NOT_IN_PLACE = aten.REPLACES | {"requires_grad_", "retain_grad_", "__init__", "share_memory_"}
CONTAINERS = frozenset("list dict set tuple defaultdict OrderedDict deque".split())
NUMBERS = frozenset({"size", "stride", "numel", "dim", "len", "int", "item", "cdiv", "ndim", "program_id"})
NO_TENSOR = re.compile(
    r"(?:\b(?:int|float|bool|str|None|list|List|tuple|Tuple|Sequence|Optional|Union|Literal|torch\.\w*(?:dtype|device"
    r"|Size|Generator)|dict|Dict|Callable|Any)\b|[\[\]|,.\s'\"]|\w*SymInt)+"
)
LISTS = re.compile(r"\b(?:list|List|Sequence|tuple|Tuple|dict|Dict)\b")

Origin = tuple[
    str, str
]  # a parameter, and what of it: its memory, a list of tensors, perhaps a copy, an array, an address
Value = frozenset[Origin]
MEMORY, LIST, MAYBE, ARRAY, ADDRESS = "memory", "list", "perhaps", "array", "address"
NOTHING: Value = frozenset()
Constants = tuple[tuple[str, bool], ...]  # parameters that are true or false, and stay so
OUT_OF_TORCH = {  # the memory as something else than a tensor
    "data_ptr": ADDRESS, "__array_interface__": ADDRESS, "__cuda_array_interface__": ADDRESS, "numpy": ARRAY,
    "__array__": ARRAY, "asarray": ARRAY, "asanyarray": ARRAY,
}  # fmt: skip


@dataclass
class FunctionEffects:
    """What a function does to its parameters, and which of them it hands back."""

    effects: dict[str, dict[tuple[str, int, str], None]] = field(default_factory=dict)  # ("written", line, why)
    returned: Value = NOTHING
    returns: list[tuple[Value, ...]] = field(default_factory=list)  # of each statement: the values of the tuple, or one


class Natives(Protocol):
    """Functions that C++ hands to Python, by name."""

    def get(self, name: str, /) -> Native | None: ...


@dataclass
class Flow:
    """The functions of a tree, each read once, and what is known of operators and of functions of C++."""

    modules: Modules
    known: Mapping[str, Sequence[int]]
    natives: Natives
    read: Callable[[Flow, PythonModule, ast.FunctionDef, Constants], FunctionEffects]
    done: dict[tuple[ast.FunctionDef, Constants], FunctionEffects] = field(default_factory=dict)

    def of(self, module: PythonModule, function: ast.FunctionDef, constants: Constants = ()) -> FunctionEffects:
        """What a function does; recursion is cut."""
        key = function, constants
        if key not in self.done:
            self.done[key] = FunctionEffects()
            self.done[key] = self.read(self, module, function, constants)
        return self.done[key]


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, and it."""
    places = [*given.posonlyargs, *given.args]
    yield from ((a.arg, d) for a, d in zip(reversed(places), reversed(given.defaults), strict=False))
    yield from ((a.arg, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None)


def rest(function: ast.FunctionDef) -> tuple[str, str]:
    """The names behind `*` and `**`, or ""."""
    given = function.args
    return tuple(a.arg if a else "" for a in (given.vararg, given.kwarg))  # type: ignore[return-value]


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in arguments(function)]


def names_of(node: ast.AST) -> Iterator[str]:
    return (item.id for item in ast.walk(node) if isinstance(item, ast.Name))


def dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def in_place(name: str) -> bool:
    if name.endswith("__"):
        return IN_PLACE.fullmatch(name) is not None
    return name.endswith("_") and name not in NOT_IN_PLACE


def _given(argument: ast.arg, triton: bool) -> Value:
    kind = ast.unparse(argument.annotation) if argument.annotation and not triton else ""
    if kind and ("Tensor" not in kind and NO_TENSOR.fullmatch(kind)):
        return NOTHING
    return frozenset({(argument.arg, LIST if LISTS.search(kind) else MEMORY)})


def is_container(made: ast.expr | None) -> bool:
    """Whether an expression makes a list, a dictionary or the like."""
    literals = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    return isinstance(made, literals) or (isinstance(made, ast.Call) and last(made.func) in CONTAINERS)


def makes_tensor(made: ast.expr | None) -> bool:
    """Whether an expression surely is a new tensor, or a number."""
    if isinstance(made, ast.Call):
        return dotted_name(made.func).startswith(("torch.", "F.")) and not dotted_name(made.func).startswith(
            "torch.ops"
        )
    return isinstance(made, ast.BinOp)


class Values:
    """Expressions of one function."""

    def __init__(self, flow: Flow, module: PythonModule, function: ast.FunctionDef, constants: Constants = ()) -> None:
        self.flow = flow
        self.module = module
        self.function = function
        self.constants = dict(constants)
        self.triton = any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
        self.names: dict[str, Value] = {a.arg: _given(a, self.triton) for a in arguments(function)}
        self.names |= {name: frozenset({(name, LIST)}) for name in rest(function) if name}
        self.containers: set[str] = set()  # names of lists, dictionaries and the like that are made here
        self.tensors: set[str] = set()  # names of tensors that are made here
        self.returns_of: dict[str, Value] = {}  # what functions that are defined here give back of what is around them
        self.numbers = {a.arg for a in arguments(function) if a.annotation and ast.unparse(a.annotation) == "int"}
        self.local_functions: dict[str, ast.FunctionDef] = {}
        self.found = FunctionEffects()

    def effect(self, kind: str, value: Value, line: int, why: str = "") -> None:
        for name, _ in value:
            self.found.effects.setdefault(name, {})[(kind, line, why)] = None

    def write(self, value: Value, line: int) -> None:
        self.effect("written", frozenset(o for o in value if o[1] != MAYBE), line)
        doubtful = frozenset(o for o in value if o[1] == MAYBE)
        self.effect("unknown", doubtful, line, "written where what came before makes no copy")

    def bind(self, target: ast.expr, value: Value, made: ast.expr | None = None, number: bool = False) -> None:
        """`target = value`; `made`: the expression that it is."""
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            (self.numbers.add if number else self.numbers.discard)(target.id)
            kinds = ((self.containers, is_container(made)), (self.tensors, makes_tensor(made)))
            for names, of_kind in kinds:
                (names.add if of_kind else names.discard)(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self.bind(item, element(value), number=number)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, held([value]))
        elif isinstance(target, ast.Subscript):
            self.value(target.slice)
            base = self.value(target.value)
            self.write(frozenset(o for o in base if o[1] != LIST), target.lineno)
            self.keep(target.value, value, target.lineno)
        elif isinstance(target, ast.Attribute):
            self.effect("unknown", self.value(target.value), target.lineno, f"its .{target.attr} is assigned to")
            self.effect("unknown", value, target.lineno, f"kept in a .{target.attr}")

    def keep(self, node: ast.expr, value: Value, line: int) -> None:
        """A value becomes an element of what an expression stands for."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Name):
            self.effect("unknown", value, line, "kept in an object")
        elif node.id in self.containers:
            self.names[node.id] = self.names.get(node.id, NOTHING) | held([value])
        elif any(what == LIST for _, what in self.names.get(node.id, NOTHING)):
            self.effect("unknown", value, line, f"kept in '{node.id}'")
        elif node.id not in self.tensors and not self.names.get(node.id):  # else its data is copied
            self.names[node.id] = perhaps(value)

    def each(self, target: ast.expr, node: ast.expr) -> None:
        """`for target in node`."""
        name = dotted_name(node.func) if isinstance(node, ast.Call) else ""
        parts = target.elts if isinstance(target, ast.Tuple) else []
        if isinstance(node, ast.Call) and name == "range":
            self.bind(target, NOTHING, number=True)
        elif isinstance(node, ast.Call) and name == "enumerate" and len(parts) == 2 and node.args:
            self.bind(parts[0], NOTHING, number=True)
            self.each(parts[1], node.args[0])
        elif isinstance(node, ast.Call) and name == "zip" and len(parts) == len(node.args):
            for part, item in zip(parts, node.args, strict=True):
                self.each(part, item)
        else:
            self.bind(target, element(self.value(node)))

    def value(self, node: ast.expr) -> Value:
        """The parameters that an expression shares memory with."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is not None:
            result: Value = method(node)
            return result
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return NOTHING

    def of_Name(self, node: ast.Name) -> Value:
        return self.names.get(node.id, NOTHING)

    def of_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind(node.target, value, node.value)
        return value

    def of_Starred(self, node: ast.Starred) -> Value:
        return element(self.value(node.value))

    def of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        return held([self.value(item) for item in node.elts])

    of_List = of_Set = of_Tuple

    def of_Dict(self, node: ast.Dict) -> Value:
        return held([self.value(item) for item in (*filter(None, node.keys), *node.values)])

    def of_Await(self, node: ast.Await | ast.FormattedValue) -> Value:
        return self.value(node.value)

    of_FormattedValue = of_Await

    def of_JoinedStr(self, node: ast.JoinedStr) -> Value:
        return computed(NOTHING.union(*map(self.value, node.values)))

    def of_Yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        if node.value is not None:
            self.found.returned |= held([self.value(node.value)])
        return NOTHING

    of_YieldFrom = of_Yield

    def of_Subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value)
        self.value(node.slice)
        return frozenset(
            (name, MEMORY if what == LIST else what if self.basic(node.slice) else MAYBE)
            for name, what in value
            if what == LIST or not isinstance(node.slice, ast.Compare)  # x[x > 0] is a copy
        )

    def basic(self, index: ast.expr) -> bool:
        """Whether an index makes a view: numbers and slices do, tensors make a copy."""
        if isinstance(index, ast.Tuple):
            return all(map(self.basic, index.elts))
        return isinstance(index, ast.Slice | ast.Constant) or self.is_number(index)

    def is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if isinstance(node, ast.Name):
            return node.id in self.numbers
        if isinstance(node, ast.BinOp):
            return self.is_number(node.left) and self.is_number(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_number(node.operand)
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        if isinstance(node, ast.Attribute):
            return node.attr == "shape"  # `h, w = x.shape`
        function = node.func if isinstance(node, ast.Call) else None
        return function is not None and last(function) in NUMBERS

    def of_Attribute(self, node: ast.Attribute) -> Value:
        value = self.value(node.value)
        if in_place(node.attr) and not self.triton:
            self.effect("unknown", value, node.lineno, f"its method {node.attr} is taken")
        return known_as(node.attr, value) if node.attr in OUT_OF_TORCH else value if node.attr in VIEWS else NOTHING

    def of_BinOp(self, node: ast.BinOp) -> Value:
        both = self.value(node.left) | self.value(node.right)
        if self.triton:
            return both if isinstance(node.op, ast.Add | ast.Sub) else NOTHING
        return frozenset(o for o in both if o[1] == LIST) | computed(both)  # a list of both

    def of_IfExp(self, node: ast.IfExp) -> Value:
        self.value(node.test)
        decided = self.decided(node.test)
        sides = ((node.body, True), (node.orelse, False))
        return NOTHING.union(*(self.value(side) for side, holds in sides if decided in (None, holds)))

    def decided(self, node: ast.expr) -> bool | None:
        """Whether a condition holds, where it is told by what is known of parameters."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.decided(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            found, stops = [self.decided(item) for item in node.values], isinstance(node.op, ast.Or)
            return stops if stops in found else None if None in found else not stops
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, bool) else None
        return self.constants.get(node.id) if isinstance(node, ast.Name) else None

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        return frozenset().union(*(self.value(item) for item in node.values))

    def of_Lambda(self, node: ast.Lambda) -> Value:
        before = dict(self.names)
        given = {name: self.value(default) for name, default in defaults(node.args)}
        self.names |= {a.arg: NOTHING for a in node.args.args} | given
        self.value(node.body)
        self.names = before
        return NOTHING

    def of_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        before = dict(self.names)
        for part in node.generators:
            self.each(part.target, part.iter)
            for test in part.ifs:
                self.value(test)
        value = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        self.names = before
        return held([value])

    of_SetComp = of_GeneratorExp = of_DictComp = of_ListComp


def element(value: Iterable[Origin]) -> Value:
    """A part of a tensor, or an element of a list of tensors."""
    return frozenset((name, MEMORY if what == LIST else what) for name, what in value)


def held(values: Iterable[Value]) -> Value:
    """A container of these values."""
    return frozenset((name, LIST if what == MEMORY else what) for value in values for name, what in value)


def perhaps(value: Value) -> Value:
    return frozenset((name, what if what == ADDRESS else MAYBE) for name, what in value)


def known_as(name: str, value: Value) -> Value:
    """The memory as one of OUT_OF_TORCH gives it."""
    return frozenset((root, OUT_OF_TORCH[name] if what == MEMORY else what) for root, what in value)


def computed(value: Value) -> Value:
    """What is made of an address may be another one."""
    return frozenset(o for o in value if o[1] == ADDRESS)


def last(node: object) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
