"""Operators that Python registers, and fakes: define, custom_op, triton_op, vLLM's wrapper, register_fake.

Reads Python as a syntax tree; imports none of it. What is computed at run time is not read. Flow through the functions
is in pyflow.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .literals import MappedText
from .model import Location, Span

DECORATORS = frozenset({"custom_op", "triton_op", "register_custom_op"})
FAKES = frozenset({"register_fake", "impl_abstract", "register_meta", "_register_fake", "register_abstract"})
WRAPPERS = frozenset({"direct_register_custom_op"})
HINT = (b"custom_op", b"triton_op", b".define(", b"register_fake", b"impl_abstract", b".impl(", b"_register_fake")


@dataclass(frozen=True, slots=True)
class PyOperator:
    """One operator that Python registers. `mutates` is None where it is not written as a constant."""

    name: str  # "ns::op", or "op" where the namespace is not a constant
    location: Location
    function: str  # the Python function that implements it, if it stands in the same file
    mutates: tuple[str, ...] | None
    schema: MappedText | None = None
    kind: str = ""
    mutates_span: Span | None = None


@dataclass(frozen=True, slots=True)
class Fake:
    """A fake of an operator: its parameters with their defaults as written."""

    name: str
    location: Location
    parameters: tuple[tuple[str, str | None], ...] | None


@dataclass
class PySource:
    """What one Python file registers, and its functions."""

    path: str
    operators: list[PyOperator] = field(default_factory=list)
    fakes: list[Fake] = field(default_factory=list)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    implemented: dict[str, str] = field(default_factory=dict)  # operator -> function, through lib.impl


def may_register(data: bytes) -> bool:
    """A cheap look: could this file register operators?"""
    return any(hint in data for hint in HINT)


def read(data: bytes, path: str) -> PySource | None:
    """The registrations of one file; nothing where it is no Python of this version."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _Reader(data, path, tree).read()


class _Reader:
    def __init__(self, data: bytes, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.found = PySource(path)
        self.starts = [0]
        for line in data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.libraries: dict[str, str] = {}  # variable -> namespace

    def read(self) -> PySource:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.found.functions.setdefault(node.name, node)
                for decorator in node.decorator_list:
                    self.decorated(decorator, node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                self.library(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.call(node)
        return self.found

    def where(self, node: ast.expr | ast.stmt) -> Location:
        return Location(self.path, node.lineno, node.col_offset + 1)

    def library(self, node: ast.Assign) -> None:
        call = node.value
        if isinstance(call, ast.Call) and _last(call.func) == "Library" and call.args:
            namespace = _constant(call.args[0])
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.libraries[target.id] = namespace or ""

    def decorated(self, decorator: ast.expr, function: ast.FunctionDef) -> None:
        if not isinstance(decorator, ast.Call):
            return
        name = _last(decorator.func)
        if name in DECORATORS and decorator.args:
            self.operator(decorator, function.name, name)
        elif name in FAKES and decorator.args:
            self.fake(_constant(decorator.args[0]), decorator, function)
        elif name == "impl" and len(decorator.args) >= 2:
            arguments = [_constant(a) for a in decorator.args]
            op = arguments[1] if arguments[0] is None else arguments[0]
            if any(a in ("Meta", "meta") for a in arguments):
                self.fake(op, decorator, function)
            elif op:
                self.found.implemented[op] = function.name

    def operator(self, call: ast.Call, function: str, kind: str) -> None:
        name = _constant(call.args[0])
        if name is None:
            return
        mutates, span = self.mutates(call)
        self.found.operators.append(PyOperator(name, self.where(call), function, mutates, None, kind, span))

    def mutates(self, call: ast.Call) -> tuple[tuple[str, ...] | None, Span | None]:
        """mutates_args and where it stands; absent means that nothing is declared."""
        for keyword in call.keywords:
            if keyword.arg in ("mutates_args", "mutates"):
                node = keyword.value
                if isinstance(node, ast.List | ast.Tuple | ast.Set):
                    names = [_constant(item) for item in node.elts]
                    return (tuple(n for n in names if n) if all(names) else None), self.span(node)
                return None, None
        return (), None

    def span(self, node: ast.expr) -> Span:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return Span(self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column)

    def call(self, node: ast.Call) -> None:
        name = _last(node.func)
        if name in WRAPPERS:
            self.wrapper(node)
        elif name in FAKES and len(node.args) >= 2:
            self.fake(_constant(node.args[0]), node, self.found.functions.get(_last(node.args[1])))
        elif name == "define" and node.args:
            self.define(node)
        elif name == "impl" and len(node.args) >= 2 and isinstance(node.func, ast.Attribute):
            self.impl(node)

    def wrapper(self, node: ast.Call) -> None:
        """vLLM's direct_register_custom_op(op_name, op_func, mutates_args, fake_impl, …)."""
        given = dict(zip(("op_name", "op_func", "mutates_args", "fake_impl"), node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        name = _constant(given["op_name"]) if "op_name" in given else None
        if name is None:
            return
        mutates, span = self.mutates(node)
        if "mutates_args" in given and mutates == () and span is None:
            value = given["mutates_args"]
            names = [_constant(item) for item in value.elts] if isinstance(value, ast.List | ast.Tuple) else [None]
            mutates = tuple(n for n in names if n) if all(names) else None
        function = _last(given["op_func"]) if "op_func" in given else ""
        where = self.where(node)
        self.found.operators.append(PyOperator(name, where, function, mutates, None, "direct_register_custom_op", span))
        fake = given.get("fake_impl")
        if fake is not None and _last(fake):
            self.fake(name, node, self.found.functions.get(_last(fake)))

    def define(self, node: ast.Call) -> None:
        """`torch.library.define("ns::op", "(…) -> …")` and `lib.define("op(…) -> …")`."""
        first = _constant(node.args[0])
        if first is None:
            return
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        namespace = self.libraries.get(_last(owner)) if owner is not None else None
        if "(" in first:
            text = self.mapped(node.args[0], first, "")
            name = first.split("(")[0].strip()
            full = f"{namespace}::{name}" if namespace else name
        elif len(node.args) > 1 and (second := _constant(node.args[1])) is not None and "(" in second:
            full = first
            text = self.mapped(node.args[1], second, first)
        else:
            return
        if text is not None:
            self.found.operators.append(PyOperator(full, self.where(node), "", (), text, "define"))

    def mapped(self, node: ast.expr, text: str, name: str) -> MappedText | None:
        """A schema text; edits are possible where it is one plain literal on one line."""
        whole = name + text
        span = self.span(node)
        plain = span.end - span.start == len(text) + 2
        start = span.start + 1 if plain else span.start
        head = [Span(start, start)] * len(name)
        body = [Span(start + i, start + i + 1) if plain else span for i in range(len(text))]
        return MappedText(whole, (*head, *body))

    def impl(self, node: ast.Call) -> None:
        arguments = [_constant(a) for a in node.args]
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        namespace = self.libraries.get(_last(owner), "") if owner is not None else ""
        op, function = arguments[0], _last(node.args[1])
        if op is None:
            return
        full = op if "::" in op or not namespace else f"{namespace}::{op}"
        keys = [a for a in arguments[2:] if a] + [str(_constant(k.value)) for k in node.keywords]
        if "Meta" in keys:
            self.fake(full, node, self.found.functions.get(function))
        elif function:
            self.found.implemented[full] = function

    def fake(self, name: str | None, node: ast.expr, function: ast.FunctionDef | None) -> None:
        if name:
            parameters = None if function is None else tuple(_parameters(function))
            self.found.fakes.append(Fake(name, self.where(node), parameters))


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[str, str | None]]:
    """Names and defaults of a function's parameters; `*` where it takes any."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = len(plain) - len(arguments.defaults)
    for number, parameter in enumerate(plain):
        yield parameter.arg, ast.unparse(arguments.defaults[number - missing]) if number >= missing else None
    if arguments.vararg or arguments.kwarg:
        yield "*", None
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield parameter.arg, ast.unparse(default) if default is not None else None


def _last(node: ast.expr | None) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _constant(node: ast.expr) -> str | None:
    """A string that is written as one, pieces joined."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _constant(node.left), _constant(node.right)
        return left + right if left is not None and right is not None else None
    return None
