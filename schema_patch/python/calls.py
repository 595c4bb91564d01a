"""Python bytes -> who calls an operator that returns nothing any more, and what becomes of the result.

Knows how torch names operators in Python (`torch.ops.NS.op`, also behind other names); knows no C++, no file, no edit.
What it cannot follow is a Stray, never guessed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial

from schema_patch.model import Location, ToolError
from schema_patch.schemas.gone import Gone, VoidedOperator

from .literals import PythonText
from .names import ANY, Names, is_own

LOOKS = frozenset({"hasattr", "getattr", "callable", "isinstance", "id", "print", "str", "repr", "type"})
HOLDERS = (ast.Call, ast.keyword, ast.Return, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.arguments,
           ast.Lambda, ast.Yield, ast.Assign, ast.AnnAssign)  # fmt: skip
HANDLE = re.compile(rb"torch\.ops|\w\.ops\.|\w\.ops\s*[,)]|import[^\n]*\bops\b")


class Use(Enum):
    """What becomes of a call's result."""

    UNUSED = "is not used"
    RETURNED = "is returned"
    ASSIGNED = "is assigned"
    HANDED_ON = "is what a lambda returns"
    TAKEN = "is used in an expression"


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A call of an operator; `sure` where it can be no other."""

    gone: VoidedOperator
    node: ast.Call
    use: Use
    sure: bool


@dataclass(frozen=True, slots=True)
class Stray:
    """A place that this module cannot follow."""

    op: str
    node: ast.AST
    message: str


class CallingModule(PythonText):
    """One Python file that calls, or has fakes of, operators whose return is gone."""

    def __init__(self, data: bytes, path: str, names: Names, gone: Gone) -> None:
        super().__init__(data, path)
        self.names = names
        self.gone = gone
        self.calls: list[PythonCall] = []
        self.strays: list[Stray] = []

    def location(self, node: ast.AST) -> Location:
        """Where a node stands; for an argument list or the like, where its parent does."""
        while not isinstance(node, (ast.expr, ast.stmt)):
            node = self.names.parent[node]
        return self.where(node)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every name that stands anywhere in the module."""
        found = {node.id for node in self.names.nodes if isinstance(node, ast.Name)}
        return frozenset(found | {node.arg for node in self.names.nodes if isinstance(node, ast.arg)})


def may_matter(data: bytes, gone: Gone, others: Iterable[str] = ()) -> bool:
    """A cheap look: could this file name such an operator, import one by another name, or compute the name of one?"""
    if any(one.op.encode() in data for one in gone) or b"register_fake" in data or b"impl_abstract" in data:
        return True
    if b"import" in data and any(name.encode() in data for name in others):
        return True
    takes = b"getattr" in data and HANDLE.search(data) is not None
    return takes and any(one.namespace is None or one.namespace.encode() in data for one in gone)


def named(path: str, gone: Gone) -> VoidedOperator | None:
    """The operator that a dotted path, torch.ops.NS.op or with an overload, names, if its return is gone."""
    parts = path.split(".")
    if parts[:2] != ["torch", "ops"] or len(parts) not in (4, 5):
        return None
    for one in gone:
        overload = len(parts) == 4 or parts[4] in ("default", one.overload)
        if parts[3] == one.op and one.namespace in (None, parts[2]) and overload:
            return one
    return None


def parse(data: bytes, path: str) -> ast.Module:
    """The tree of a Python file. Raises ToolError where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, say: not ours to tell
            return ast.parse(data, path)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as error:
        line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
        why = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        raise ToolError(f"expected Python, cannot parse it: {why}", Location(path, line, 1 if line else 0)) from error


# The path of a file, a dotted path of its imports -> what that stands for.
Outside = Callable[[str, str], frozenset[str]]


def read(data: bytes, path: str, gone: Gone, outside: Outside) -> CallingModule:
    """What a Python file does with these operators. Raises ToolError where it cannot be parsed."""
    names = Names(parse(data, path), partial(outside, path))
    module = CallingModule(data, path, names, gone)
    for node in names.nodes:
        if isinstance(node, ast.Call):
            _call(module, node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
            _value(module, node)
    return module


def argument(call: ast.Call, position: int, keyword: str | None) -> ast.expr | None:
    """The argument that a call gives by position or by keyword; None where that cannot be told."""
    given = call.args[: position + 1]
    if len(given) > position and not any(isinstance(item, ast.Starred) for item in given):
        return given[position]
    return next((item.value for item in call.keywords if item.arg == keyword), None) if keyword else None


def _call(module: CallingModule, node: ast.Call) -> None:
    found = [named(path, module.gone) for path in sorted(module.names.paths(node.func))]
    first = next(filter(None, found), None)
    if first:
        sure = all(one == first for one in found)
        module.calls.append(PythonCall(first, node, _use(module.names, node), sure))


def _use(names: Names, call: ast.Call) -> Use:
    parent = names.parent[call]
    if isinstance(parent, ast.Return):
        return Use.UNUSED if _returns_nothing(names, parent) else Use.RETURNED
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if all(isinstance(target, ast.Name) and target.id == "_" for target in targets):
            return Use.UNUSED
        whole = all(isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) for target in targets)
        return Use.ASSIGNED if whole else Use.TAKEN
    if isinstance(parent, ast.Lambda):
        return Use.HANDED_ON
    above: ast.AST = call
    while _passes_on(parent, above):
        above, parent = parent, names.parent[parent]
    return Use.UNUSED if isinstance(parent, ast.Expr) else Use.TAKEN


def _returns_nothing(names: Names, statement: ast.Return) -> bool:
    """Whether the function around says `-> None`: nobody may use what it returns."""
    function = names.function_around(statement)
    says = function.returns if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return isinstance(says, ast.Constant) and says.value in (None, "None")


def _passes_on(parent: ast.AST, node: ast.AST) -> bool:
    """Whether the value of `parent` may be that of `node`, or a list of such."""
    if isinstance(parent, ast.BoolOp):
        return parent.values[-1] is node
    if isinstance(parent, ast.IfExp):
        return parent.test is not node
    return isinstance(parent, ast.ListComp) and parent.elt is node


def _value(module: CallingModule, node: ast.Name | ast.Attribute | ast.Call) -> None:
    """Notes an operator that is handed to where it cannot be followed, or that has a computed name."""
    names, gone = module.names, module.gone
    if not isinstance(node, ast.Call) and (not isinstance(node.ctx, ast.Load) or not _escapes(names, node)):
        return
    paths = sorted(names.paths(node))
    if isinstance(node, ast.Call):
        if any(_may_name(path, gone) for path in paths):
            module.strays.append(Stray("", node, "takes an operator by a name that is computed"))
        if not _escapes(names, node):
            return
    for path in paths:
        one = named(path, gone)
        if one:
            module.strays.append(Stray(one.op, node, "hands the operator on"))
        elif any(one.namespace and path == f"torch.ops.{one.namespace}" for one in gone):
            module.strays.append(Stray("", node, f"hands {path} on"))


def _may_name(path: str, gone: Gone) -> bool:
    """Whether a path with computed parts may name such an operator."""
    parts = path.split(".")
    if parts[:2] != ["torch", "ops"] or len(parts) != 4 or ANY not in parts:
        return False
    return any(parts[3] in (ANY, one.op) and (parts[2] == ANY or one.namespace in (None, parts[2])) for one in gone)


def _unpacked(names: Names, values: ast.expr) -> bool:
    """Whether these are the values of `a, b = x, y`, a name each."""
    statement = names.parent[values]
    if not isinstance(statement, ast.Assign) or not isinstance(values, (ast.Tuple, ast.List)):
        return False
    return all(
        isinstance(target, (ast.Tuple, ast.List))
        and len(target.elts) == len(values.elts)
        and all(isinstance(item, ast.Name) for item in target.elts)
        for target in statement.targets
    )


def _escapes(names: Names, node: ast.expr) -> bool:
    """Whether a value goes where it cannot be followed: not called, not looked at, not bound to a name."""
    above: ast.AST = node
    parent = names.parent[node]
    while _passes_on(parent, above) or isinstance(parent, (ast.NamedExpr, ast.BoolOp)):
        above, parent = parent, names.parent[parent]
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return parent.value is above and not all(isinstance(t, ast.Name) or is_own(t) for t in targets)
    if isinstance(parent, (ast.Tuple, ast.List, ast.Set)):
        return not (isinstance(names.parent[parent], (ast.For, ast.comprehension)) or _unpacked(names, parent))
    call = names.parent[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(call, ast.Call):
        function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        return call.func is not above and function not in LOOKS and "register" not in function
    return isinstance(parent, HOLDERS)
