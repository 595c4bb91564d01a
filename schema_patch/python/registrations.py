"""Operators that Python registers, and fakes: define, custom_op, triton_op, vLLM's wrapper, register_fake.

Reads Python as a syntax tree; imports none of it. What is computed at run time is not read. Flow through the functions
is in pyflow.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from schema_patch.model import Location, Span
from schema_patch.schemas.grammar import Schema, SchemaError, parse
from schema_patch.text.mapped import MappedText, Unreadable

from . import literals
from .modules import functions
from .names import Names
from .values import arguments, defaults, last, rest

MAKERS = frozenset({"custom_op", "triton_op"})
DECORATORS = MAKERS | {"register_custom_op"}
FAKES = frozenset({"register_fake", "impl_abstract", "register_meta", "_register_fake", "register_abstract"})
FAKE_LIKE = re.compile("fake|abstract|meta", re.IGNORECASE)
WRAPPERS = frozenset({"direct_register_custom_op"})
REGISTER = MAKERS | FAKES | WRAPPERS | {"define", "impl"}
HINT = re.compile(  # `_custom_ops`, which every caller imports, is none
    rb"custom_op(?!\w)|triton_op(?!\w)|\.define\(|register_fake|impl_abstract|\.impl\("
)


@dataclass(frozen=True, slots=True)
class PyOperator:
    """One operator that Python registers. `mutates` is None where it is not written as a constant."""

    name: str  # "ns::op", or "op" where the namespace is not a constant
    location: Location
    function: str  # the Python function that implements it, if it stands in the same file
    mutates: tuple[str, ...] | None
    schema: MappedText | None = None
    kind: str = ""
    mutates_span: Span | None = None  # of the literal; empty where it could be added; None: neither is there

    @property
    def op(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition("::")[2]

    @property
    def parsed(self) -> Schema | None:
        """The schema; None where there is none, or none that parses."""
        try:
            return parse(self.schema.text) if self.schema else None
        except SchemaError:
            return None

    @property
    def declares(self) -> tuple[str, ...] | None:
        """What it says it writes; None where that is not written as a constant."""
        if not self.schema:
            return self.mutates
        schema = self.parsed
        return schema.writes if schema else None

    @property
    def said(self) -> str:
        """What it declares, for people."""
        if self.schema:
            return self.schema.text
        return f"{self.name} (mutates_args={'computed' if self.mutates is None else list(self.mutates)})"


@dataclass(frozen=True, slots=True)
class FakeSignature:
    """A fake of an operator: its parameters with their defaults as written."""

    name: str
    location: Location
    parameters: tuple[tuple[str, str | None], ...] | None


@dataclass
class PySource:
    """What one Python file registers, and its functions."""

    path: str
    operators: list[PyOperator] = field(default_factory=list)
    fakes: list[FakeSignature] = field(default_factory=list)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)  # by names that stand for one only
    decorated: dict[Location, ast.FunctionDef] = field(default_factory=dict)  # by the place of the decorator
    untold: list[Location] = field(default_factory=list)  # registrations by a name that is computed
    perhaps: set[str] = field(default_factory=set)  # operators that may have a fake, registered by a computed name
    implemented: dict[str, str] = field(default_factory=dict)  # operator -> function, through lib.impl


def may_register(data: bytes) -> bool:
    """A cheap look: could this file register operators?"""
    return HINT.search(data) is not None


def read(data: bytes, path: str) -> PySource | None:
    """The registrations of one file; nothing where it is no Python of this version."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _PythonReader(data, path, tree).read()


class _PythonReader(literals.PythonText):
    def __init__(self, data: bytes, path: str, tree: ast.Module) -> None:
        super().__init__(data, path)
        self.tree = tree
        self.found = PySource(path)
        self.libraries: dict[str, str] = {}  # variable -> namespace
        self.names = Names(tree)
        self.computed = False  # whether a fake is registered by a name that is not written there

    def read(self) -> PySource:
        calls: list[ast.Call] = []
        self.found.functions = functions(self.names.nodes)
        decorated: list[tuple[ast.expr, ast.FunctionDef]] = []
        for node in self.names.nodes:
            if isinstance(node, ast.Call):
                calls.append(node)
            elif isinstance(node, ast.FunctionDef):
                decorated += [(decorator, node) for decorator in node.decorator_list]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                self.library(node)
        for decorator, function in decorated:
            self.decorated(decorator, function)
        ours = {decorator for decorator, _ in decorated}
        for node in calls:
            for _ in self.names.turns(node) if last(node.func) in REGISTER else ():
                self.call(node, alone=node not in ours)
            if FAKE_LIKE.search(last(node.func)):
                self.found.perhaps |= {text for item in node.args for text in _strings(item)}
        if self.computed:
            self.found.perhaps |= set(_strings(self.tree))
        return self.found

    def constant(self, node: ast.expr | None) -> str | None:
        return self.names.text(node) if node else None

    def library(self, node: ast.Assign) -> None:
        call = node.value
        if isinstance(call, ast.Call) and last(call.func) == "Library" and call.args:
            namespace = self.constant(call.args[0])
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.libraries[target.id] = namespace or ""

    def decorated(self, decorator: ast.expr, function: ast.FunctionDef) -> None:
        if not isinstance(decorator, ast.Call):
            return
        name = last(decorator.func)
        if name in DECORATORS and decorator.args:
            self.operator(decorator, function.name, name)
            self.found.decorated[self.where(decorator)] = function
        elif name in FAKES and decorator.args:
            self.fake(self.constant(decorator.args[0]), decorator, function)
        elif name == "impl" and len(decorator.args) >= 2:
            arguments = [self.constant(a) for a in decorator.args]
            namespace = self.libraries.get(last(decorator.args[0]))  # `impl(lib, "op", "CPU")`, `impl("ns::op", "CPU")`
            op = arguments[0] if namespace is None and arguments[0] else arguments[1]
            op = f"{namespace}::{op}" if op and namespace and "::" not in op else op
            if any(a in ("Meta", "meta") for a in arguments):
                self.fake(op, decorator, function)
            elif op:
                self.found.implemented[op] = function.name

    def operator(self, call: ast.Call, function: str, kind: str) -> None:
        name = self.constant(call.args[0])
        if name is None:
            self.found.untold.append(self.where(call))
            return
        mutates, span = self.mutates(call)
        if any(keyword.arg == "schema" for keyword in call.keywords):
            span = None  # torch holds mutates_args against the schema that is given: one of them is not enough
        self.found.operators.append(PyOperator(name, self.where(call), function, mutates, None, kind, span))

    def mutates(self, call: ast.Call, given: ast.expr | None = None) -> tuple[tuple[str, ...] | None, Span | None]:
        """mutates_args and where it stands; absent means that nothing is declared."""
        named = (keyword.value for keyword in call.keywords if keyword.arg in ("mutates_args", "mutates"))
        node = next(named, given)
        if node is None:
            return (), None
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            names = [self.constant(item) for item in node.elts]
            return (tuple(n for n in names if n) if all(names) else None), self.span(node)
        if isinstance(node, ast.Dict) and not node.keys:  # `{}`: an empty set is meant
            return (), self.span(node)
        return None, None

    def call(self, node: ast.Call, *, alone: bool) -> None:
        name = last(node.func)
        if name in WRAPPERS:
            self.wrapper(node)
        elif name in MAKERS and node.args and alone:
            self.operator(node, self.given(node), name)
        elif name in FAKES and node.args and alone:
            function = self.found.functions.get(last(node.args[-1])) if len(node.args) > 1 else None
            self.fake(self.constant(node.args[0]), node, function)
        elif name == "define" and node.args:
            self.define(node)
        elif name == "impl" and alone and len(node.args) >= 2 and isinstance(node.func, ast.Attribute):
            self.impl(node)

    def given(self, node: ast.Call) -> str:
        """The function of `custom_op("ns::op", function, …)` and `custom_op("ns::op", …)(function)`."""
        around = self.names.parent.get(node)
        called = around.args if isinstance(around, ast.Call) and around.func is node else []
        return next(map(self.function, [*node.args[1:], *called]), "")

    def function(self, node: ast.expr) -> str:
        """The name of the function that an expression stands for."""
        meant = self.names.meant(node)
        return meant.name if isinstance(meant, ast.FunctionDef) else last(meant)

    def wrapper(self, node: ast.Call) -> None:
        """vLLM's direct_register_custom_op(op_name, op_func, mutates_args, fake_impl, …)."""
        given = dict(zip(("op_name", "op_func", "mutates_args", "fake_impl"), node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        name = self.constant(given.get("op_name"))
        if name is None:
            self.found.untold.append(self.where(node))
            return
        mutates, span = self.mutates(node, given.get("mutates_args"))
        if "mutates_args" not in given and node.keywords and all(keyword.arg for keyword in node.keywords):
            at = self.span(node.keywords[-1]).start
            span = Span(at, at)
        function, where = last(given.get("op_func")), self.where(node)
        self.found.operators.append(PyOperator(name, where, function, mutates, None, "direct_register_custom_op", span))

    def define(self, node: ast.Call) -> None:
        """`torch.library.define("ns::op", "(…) -> …")` and `lib.define("op(…) -> …")`."""
        first = self.constant(node.args[0])
        if first is None:
            if isinstance(node.func, ast.Attribute) and last(node.func.value) in (*self.libraries, "library", "lib"):
                self.found.untold.append(self.where(node))
            return
        if "(" in first:
            text = self.mapped(node.args[0], first, "")
            full = self.full(node, first.split("(")[0].strip())
        elif len(node.args) > 1 and (second := self.constant(node.args[1])) is not None and "(" in second:
            full = first
            text = self.mapped(node.args[1], second, first)
        else:
            return
        self.found.operators.append(PyOperator(full, self.where(node), "", (), text, "define"))

    def full(self, call: ast.Call, name: str) -> str:
        """A name with the namespace of the Library that a method is called of."""
        namespace = self.libraries.get(last(call.func.value)) if isinstance(call.func, ast.Attribute) else ""
        return f"{namespace}::{name}" if namespace and "::" not in name else name

    def mapped(self, node: ast.expr, text: str, name: str) -> MappedText:
        """A schema text behind a name that stands elsewhere; without spans where its bytes cannot be told apart."""
        meant = self.names.meant(node)
        where = self.span(meant if isinstance(meant, ast.expr) else node)
        try:
            found = literals.read(self.data, where, text)
        except Unreadable:
            return MappedText(name + text, ())
        return MappedText(name + text, (*[Span(where.start, where.start)] * len(name), *found.spans))

    def impl(self, node: ast.Call) -> None:
        arguments = [self.constant(a) for a in node.args]
        # `lib.impl("op", function, "CPU")` and `torch.library.impl("ns::op", "cpu", function)`
        op = arguments[0]
        given = next((a for a, text in zip(node.args[1:], arguments[1:], strict=True) if text is None), None)
        if op is None or given is None:
            return
        function, full = self.function(given), self.full(node, op)
        keys = [a for a in arguments[1:] if a] + [str(self.constant(k.value)) for k in node.keywords]
        if "Meta" in keys:
            self.fake(full, node, self.found.functions.get(function))
        elif function:
            self.found.implemented[full] = function

    def fake(self, name: str | None, node: ast.expr, function: ast.FunctionDef | None) -> None:
        if not name:
            self.computed = True
        else:
            parameters = None if function is None else _parameters(function)
            self.found.fakes.append(FakeSignature(name, self.where(node), parameters))


def schema_of(operator: PyOperator, function: ast.FunctionDef | None) -> Schema | None:
    """The schema of an operator; of one that torch makes from a function's annotations, as far as it says what is a
    tensor and what is written."""
    if operator.schema or operator.mutates is None or function is None:
        return operator.parsed
    given = []
    for number, one in enumerate(arguments(function)):
        tensor = "Tensor" in (ast.unparse(one.annotation) if one.annotation else "")
        mark = f"(a{number}!)" if one.arg in operator.mutates else ""
        given.append(f"{f'Tensor{mark}' if tensor else 'int'} {one.arg}")
    nothing = isinstance(function.returns, ast.Constant) and function.returns.value is None
    try:
        return parse(f"{operator.op}({', '.join(given)}) -> {'()' if nothing else 'Tensor'}")
    except SchemaError:
        return None


def _parameters(function: ast.FunctionDef) -> tuple[tuple[str, str | None], ...]:
    """Names and defaults of a function's parameters; `*` where it takes any."""
    given = {name: ast.unparse(node) for name, node in defaults(function.args)}
    found = tuple((one.arg, given.get(one.arg)) for one in arguments(function))
    return (*found, ("*", None)) if any(rest(function)) else found


def _strings(tree: ast.AST) -> Iterator[str]:
    """What a tree's strings name, without a namespace."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rpartition("::")[2].partition("(")[0]
