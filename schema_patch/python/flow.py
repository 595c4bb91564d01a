"""Which parameters a Python function writes: in-place methods, `out=`, item assignment, torch.ops, Triton's tl.store.

The three answers of mutation/infer.py, over one file, statement by statement: a name stands for what it was last
assigned, and where branches meet, for what it was in either. A call that leaves the file is unknown, unless it is
torch's own or an operator of which `known` says what it writes. What expressions mean is in values.py and calling.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from schema_patch.schemas.inferred import Answer, Kind

from .calling import PythonCalls
from .modules import Modules, PythonModule
from .values import (
    LIST,
    MEMORY,
    NOTHING,
    Constants,
    Flow,
    FunctionEffects,
    Natives,
    Value,
    defaults,
    element,
    held,
    names_of,
    parameters,
    rest,
)

REGISTERS = re.compile(r"custom_op|triton_op|\b(?:impl|register\w*)\b")


Writes = Mapping[str, Sequence[int]]  # operator -> positions of the arguments that it writes


def read(
    function: ast.FunctionDef,
    path: str,
    functions: Mapping[str, ast.FunctionDef],
    known: Writes,
    modules: Modules | None = None,
    natives: Natives | None = None,
) -> tuple[dict[str, Answer], tuple[str, ...]]:
    """What happens to each parameter of a function, and what each returned value is: a parameter, "fresh" or
    "unknown"."""
    modules = modules or Modules()
    module = PythonModule(path, dict(functions), modules.at(path).imports)
    read = Flow(modules, known, natives or {}, _read).of(module, function)
    effects, result = read.effects, dict[str, Answer]()
    for name in parameters(function):
        found = sorted(effects.get(name, ()), key=lambda item: item[1:])
        written = [line for kind, line, _ in found if kind == "written"]
        unknown = [(line, why) for kind, line, why in found if kind == "unknown"]
        if written:
            result[name] = Answer(name, Kind.WRITTEN, ((path, written[0]),))
        elif unknown:
            result[name] = Answer(name, Kind.UNKNOWN, (), f"{unknown[0][1]}: {path}:{unknown[0][0]}")
        else:
            result[name] = Answer(name, Kind.READ)
    return result, _returns(read.returns)


def _returns(statements: Sequence[tuple[Value, ...]]) -> tuple[str, ...]:
    """Each returned value, where all statements say the same of it."""
    told = []
    for position in range(max(map(len, statements), default=0)):
        seen = {_returned(values, position) for values in statements}
        told.append(seen.pop() if len(seen) == 1 else "unknown")
    return tuple(told)


def _returned(values: tuple[Value, ...], position: int) -> str:
    value = values[position] if position < len(values) else frozenset().union(*values)
    whole = {name for name, what in value if what == MEMORY}
    if len(whole) == 1 == len(value) and position < len(values):
        return whole.pop()
    return "unknown" if value else "fresh"


def _read(flow: Flow, module: PythonModule, function: ast.FunctionDef, constants: Constants) -> FunctionEffects:
    one = _Statements(flow, module, function, constants)
    one.block(function.body)
    if _is_stub(function):
        given = frozenset().union(*one.names.values())
        one.effect("unknown", given, function.lineno, f"the body of {function.name} is made by a decorator")
    return one.found


def _is_stub(function: ast.FunctionDef) -> bool:
    """Whether a function has no body, and something but torch's registration decorates it."""
    empty = all(
        isinstance(item, ast.Pass) or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        for item in function.body
    )
    return empty and not all(REGISTERS.search(ast.unparse(one)) for one in function.decorator_list)


class _Statements(PythonCalls):
    """The statements of one function, in order."""

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Executes statements; whether what follows them is reached."""
        for statement in body:
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                self.other(statement)
            elif method(statement) is False:
                return False
        return True

    def other(self, statement: ast.stmt) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child)

    def branches(self, *bodies: Sequence[ast.stmt]) -> bool:
        """One of these is executed; names are afterwards what they are in any that goes on."""
        before, after, reached = dict(self.names), dict[str, Value](), False
        for body in bodies:
            self.names = dict(before)
            if self.block(body):
                for name, value in self.names.items():
                    after[name] = after.get(name, NOTHING) | value
                reached = True
        self.names = after if reached else before
        return reached

    def do_If(self, node: ast.If) -> bool:
        self.value(node.test)
        decided = self.decided(node.test)
        return (
            self.branches(node.body, node.orelse) if decided is None else self.block((node.orelse, node.body)[decided])
        )

    def do_For(self, node: ast.For) -> None:
        for _ in range(2):  # a name may be used before its last assignment
            self.each(node.target, node.iter)
            self.branches(node.body, ())
        self.block(node.orelse)

    def do_While(self, node: ast.While) -> None:
        for _ in range(2):
            self.value(node.test)
            self.branches(node.body, ())
        self.block(node.orelse)

    def do_With(self, node: ast.With) -> bool:
        for item in node.items:
            self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, NOTHING)
        return self.block(node.body)

    def do_Try(self, node: ast.Try) -> None:
        self.branches([*node.body, *node.orelse], *(handler.body for handler in node.handlers), ())
        self.block(node.finalbody)

    do_AsyncFor, do_AsyncWith, do_TryStar = do_For, do_With, do_Try

    def do_Match(self, node: ast.Match) -> None:
        subject = self.value(node.subject)
        found = subject | element(subject)
        for pattern in (item for case in node.cases for item in ast.walk(case.pattern)):
            if isinstance(pattern, ast.MatchAs | ast.MatchStar) and pattern.name:
                self.names[pattern.name] = found if isinstance(pattern, ast.MatchAs) else held([found])
        self.branches(*(case.body for case in node.cases), ())

    def do_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Read where it stands, as if called there with new tensors; a call of it is read with its arguments."""
        before, returned, returns = dict(self.names), self.found.returned, list(self.found.returns)
        given = {name: self.value(default) for name, default in defaults(node.args)}
        self.local_functions[node.name] = node
        self.names |= dict.fromkeys((*parameters(node), *rest(node)), NOTHING) | given
        self.found.returned = NOTHING
        self.block(node.body)
        self.returns_of[node.name] = self.found.returned
        self.names, self.found.returned, self.found.returns = before, returned, returns

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef) -> None:
        before = dict(self.names)
        self.block(node.body)
        kept = [value for name, value in self.names.items() if value is not before.get(name)]
        self.effect("unknown", held(kept), node.lineno, f"kept in the class {node.name}")

    def do_Return(self, node: ast.Return) -> bool:
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
        values = tuple(self.value(part) for part in parts)
        self.found.returns.append(values)
        self.found.returned |= values[0] if len(values) == 1 else held(values)
        return False

    def do_Raise(self, node: ast.Raise) -> bool:
        self.other(node)
        return False

    def do_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.assign(target, node.value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, node.value)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            values = [(self.value(item), item, self.is_number(item)) for item in value.elts]
            for one, (given, made, number) in zip(target.elts, values, strict=True):
                self.bind(one, given, made, number)
            return
        self.bind(target, self.value(value), value, self.is_number(value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        """`x += y` writes a tensor's data; in Triton it moves a pointer."""
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            mine = self.names.get(node.target.id, NOTHING)
            if self.triton:
                self.bind(node.target, mine | value)
            elif node.target.id in self.containers:
                self.names[node.target.id] = mine | held([value])
            else:
                self.write(frozenset(o for o in mine if o[1] != LIST), node.lineno)
        else:
            self.bind(node.target, NOTHING)
            if isinstance(node.target, ast.Subscript):  # of a list: an element's data
                of_list = (o for o in self.value(node.target.value) if o[1] == LIST)
                self.write(element(of_list), node.lineno)

    def do_Delete(self, node: ast.Delete) -> None:
        for name in names_of(node):
            self.names.pop(name, None)
