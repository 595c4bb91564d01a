"""What the names in a Python module stand for, as far as its text tells. Pure: reads no file, imports and runs nothing.

Knows Python's scopes, not its flow: a name stands for everything that its scope binds it to. What the text does not
tell (a parameter, the result of a call) is unknown, and said to be.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Any, TypeGuard

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OPENS = frozenset({*FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
NONE: frozenset[ast.AST] = frozenset()

GROWING = frozenset({"append", "extend", "insert", "update", "setdefault", "add"})  # methods of tables
UNKNOWN = "?"  # a path that the text does not tell
ANY = "\0"  # a piece of text, or of a path, that is computed
TURNS = 500  # of the loops around one node
MANY, DEEP = 64, 50  # texts that one expression may stand for, and names behind names: beyond, it is not told


@dataclass(frozen=True, slots=True)
class Each:
    """An element of something that a loop goes through, or one part of it."""

    iterable: ast.expr
    part: int | None = None


Leaf = ast.expr | Function | str | None  # an expression that is no name, a function, a path from an import, unknown
Known = dict[ast.AST, frozenset[str]]
# What a node binds in its scope: targets, or names as they are, and what each stands for.
BINDS: dict[type, Callable[[Any], Iterable[tuple[ast.expr | str | None, Leaf | Each]]]] = {
    ast.Assign: lambda node: ((target, node.value) for target in node.targets),
    ast.AugAssign: lambda node: [(node.target, None)],
    ast.withitem: lambda node: [(node.optional_vars, None)],
    ast.Import: lambda node: (
        (alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else alias.name.partition(".")[0])
        for alias in node.names
    ),
    ast.ImportFrom: lambda node: (
        (alias.asname or alias.name, f"{'.' * node.level}{node.module + '.' if node.module else ''}{alias.name}")
        for alias in node.names
    ),
    **dict.fromkeys((ast.AnnAssign, ast.NamedExpr), lambda node: [(node.target, node.value)] if node.value else []),
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.comprehension), lambda node: [(node.target, Each(node.iter))]),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), lambda node: [(node.name, node)]),
    **dict.fromkeys((ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar), lambda node: [(node.name, None)]),
}
Element = ast.expr | tuple[ast.expr, ast.expr] | None


@dataclass(eq=False, slots=True)
class Scope:
    """The names that a module, a class, a function or a comprehension binds."""

    parent: Scope | None
    is_class: bool = False
    names: dict[str, list[Leaf | Each]] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)  # global and nonlocal

    def bind(self, name: str, what: Leaf | Each) -> None:
        self.elsewhere.get(name, self).names.setdefault(name, []).append(what)

    def look_up(self, name: str) -> tuple[Scope, list[Leaf | Each]] | None:
        scope: Scope | None = self.elsewhere.get(name, self)
        while scope:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope, scope.names[name]
            scope = scope.parent
        return None


class Names:
    """The scopes of a module, the parent of each node, and what expressions stand for.

    `outside` tells what a dotted path of an import stands for, where that is something else.
    """

    def __init__(self, tree: ast.Module, outside: Callable[[str], frozenset[str]] = lambda _: frozenset()) -> None:
        self.outside = outside
        self.parent: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self._scope: dict[ast.AST, Scope] = {}
        self._own: dict[str, list[ast.expr]] = {}  # self.name = ...
        self._grown: set[str] = set()  # tables that code adds to
        self._leaves: dict[tuple[Scope, str], list[Leaf]] = {}
        self._paths: Known = {}
        self._texts: Known = {}
        self._depth = 0
        self._turn: dict[ast.expr, Element] = {}  # what a loop is at
        self._module = Scope(None)
        self._read(tree)

    def leaves(self, node: Leaf | Each) -> Iterator[Leaf]:
        """What an expression may stand for, behind all names."""
        if isinstance(node, Each):
            turn = self._turn
            for element in [turn[node.iterable]] if node.iterable in turn else self._elements(node.iterable):
                part = _part(element, node.part)
                yield from self.leaves(part) if part is not None else (None,)
        elif isinstance(node, ast.Name):
            found = self._scope[node].look_up(node.id)
            if found is None:
                yield node.id  # built in, or from a star import
                return
            scope, bindings = found
            key = (scope, node.id)
            if key not in self._leaves:
                self._leaves[key] = [None]  # while it is looked for: a name bound by itself
                found_leaves = dict.fromkeys(leaf for binding in bindings for leaf in self.leaves(binding))
                self._leaves[key] = list(found_leaves)
            yield from self._leaves[key]
        elif isinstance(node, ast.NamedExpr):
            yield from self.leaves(node.value)
        elif isinstance(node, ast.IfExp):
            yield from self.leaves(node.body)
            yield from self.leaves(node.orelse)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self.leaves(value)
        else:
            yield node

    def paths(self, node: ast.expr) -> frozenset[str]:
        """The dotted paths, such as torch.ops.NS.op, that an expression may stand for; None stands for nothing."""
        return self._told(node, self._paths, self._paths_of, UNKNOWN)

    def texts(self, node: ast.expr) -> frozenset[str]:
        """The strings that an expression may stand for; what is not told is ANY."""
        return self._told(node, self._texts, self._texts_of, ANY)

    def text(self, node: ast.expr) -> str | None:
        """The one string that an expression stands for, `ns::op` for torch.ops.ns.op; None where it is computed."""
        found = self.texts(node)
        if found == {ANY}:
            paths = [path.split(".") for path in self.paths(node)]
            found = frozenset("::".join(parts[2:4]) for parts in paths if parts[:2] == ["torch", "ops"])
        return next(iter(found)) if len(found) == 1 and not any(ANY in text for text in found) else None

    def meant(self, node: ast.expr) -> Leaf:
        """The one thing that an expression stands for; itself where there are several."""
        found = list(self.leaves(node))
        return found[0] if len(found) == 1 and found[0] is not None else node

    @property
    def own(self) -> tuple[str, ...]:
        """The names that the module itself binds."""
        return tuple(self._module.names)

    def exported(self, name: str) -> frozenset[str]:
        """The paths that a name of the module stands for; none where it has no such name."""
        bindings = self._module.names.get(name, [])
        return frozenset(path for binding in bindings for leaf in self.leaves(binding) for path in self._paths_of(leaf))

    def functions(self, node: ast.expr) -> list[Function | None]:
        """The functions of this module that an expression may stand for; None for anything else."""
        return [leaf if isinstance(leaf, FUNCTIONS) else None for leaf in self.leaves(node)]

    def function_around(self, node: ast.AST) -> Function | None:
        """The innermost function that a node stands in."""
        above = self.parent.get(node)
        while above is not None and not isinstance(above, FUNCTIONS):
            above = self.parent.get(above)
        return above

    def turns(self, node: ast.AST) -> Iterator[None]:
        """Goes through the loops around a node: in each turn, names that they bind stand for that turn's element."""
        loops: list[ast.expr] = []
        above = self.parent.get(node)
        while above is not None:
            loops += [above.iter] if isinstance(above, (ast.For, ast.AsyncFor)) else []
            above = self.parent.get(above)
        elements = [list(self._elements(loop)) for loop in loops]
        if not loops or prod(map(len, elements)) > TURNS:
            yield
            return
        for turn in product(*elements):
            self._set_turn(dict(zip(loops, turn, strict=True)))
            yield
        self._set_turn({})

    def _told(self, node: ast.expr, known: Known, tell: Callable[[Leaf], Iterator[str]], untold: str) -> frozenset[str]:
        """What `tell` says of each leaf of an expression; `untold` in a circle, or where it is too much."""
        if node not in known:
            known[node] = frozenset({untold})
            if self._depth < DEEP:
                self._depth += 1
                found = list(islice((text for leaf in self.leaves(node) for text in tell(leaf)), MANY + 1))
                self._depth -= 1
                known[node] = frozenset(found) if len(found) <= MANY else known[node]
        return known[node]

    def _set_turn(self, turn: dict[ast.expr, Element]) -> None:
        self._turn = turn
        for known in (self._leaves, self._paths, self._texts):
            known.clear()

    def _paths_of(self, leaf: Leaf) -> Iterator[str]:
        if isinstance(leaf, str):
            yield from self.outside(leaf) or (leaf,)
        elif isinstance(leaf, ast.Attribute) and is_own(leaf) and leaf.attr in self._own:
            yield from (path for value in self._own[leaf.attr] for path in self.paths(value))
        elif isinstance(leaf, ast.Attribute):
            for path in self.paths(leaf.value):
                longer = f"{path}.{leaf.attr}"
                yield from self.outside(longer) or (longer,)
        elif isinstance(leaf, ast.Call) and _is_getattr(leaf):
            for path, name in product(self.paths(leaf.args[0]), self.texts(leaf.args[1])):
                yield f"{path}.{name if name.isidentifier() else ANY}"
        elif not (isinstance(leaf, ast.Constant) and leaf.value is None):
            yield UNKNOWN

    def _texts_of(self, leaf: Leaf) -> Iterator[str]:
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
            yield leaf.value
        elif isinstance(leaf, ast.BinOp) and isinstance(leaf.op, ast.Add):
            yield from (a + b for a, b in product(self.texts(leaf.left), self.texts(leaf.right)))
        elif isinstance(leaf, ast.JoinedStr):
            yield from map("".join, product(*(self._piece(value) for value in leaf.values)))
        elif isinstance(leaf, ast.Call):
            yield from self._called(leaf)
        else:
            yield ANY

    def _called(self, call: ast.Call) -> Iterator[str]:
        """`prefixed("op")`, where the function does nothing but return a text made of its arguments."""
        functions = self.functions(call.func)
        function = functions[0] if len(functions) == 1 and isinstance(functions[0], ast.FunctionDef) else None
        plain = function is not None and not function.decorator_list
        body = [s for s in function.body if not _is_docstring(s)] if function and plain else []
        made = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        if function is None or made is None:
            yield ANY
            return
        scope = self._scope[made]
        names = [argument.arg for argument in function.args.args]
        given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        before, told = scope.names, dict[str, list[Leaf | Each]]()
        for name, value in given.items():
            told[name] = [None if text == ANY else ast.Constant(text) for text in self.texts(value)]
        scope.names = before | told
        turn = self._turn
        self._set_turn(turn)
        found = self.texts(made)
        scope.names = before
        self._set_turn(turn)
        yield from found

    def _piece(self, node: ast.expr) -> frozenset[str]:
        if isinstance(node, ast.FormattedValue):
            plain = node.conversion in (-1, ord("s")) and node.format_spec is None
            return self.texts(node.value) if plain else frozenset({ANY})
        return self.texts(node)

    def _elements(self, node: ast.expr) -> Iterator[Element]:
        """What a loop over this goes through; also None where it is given more than is written."""
        named = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
        if isinstance(named, ast.Name) and named.id in self._grown:
            yield None
        for leaf in self.leaves(node):
            if isinstance(leaf, (ast.Tuple, ast.List, ast.Set)):
                yield from (None if isinstance(item, ast.Starred) else item for item in leaf.elts)
            elif isinstance(leaf, ast.Dict):
                yield from leaf.keys
            elif isinstance(leaf, ast.Call) and isinstance(leaf.func, ast.Attribute) and not leaf.args:
                for table in self.leaves(leaf.func.value):
                    if not isinstance(table, ast.Dict) or leaf.func.attr not in ("items", "keys", "values"):
                        yield None
                        continue
                    for key, value in zip(table.keys, table.values, strict=True):
                        yield {"items": key and (key, value), "keys": key, "values": value}[leaf.func.attr]
            else:
                yield None

    def _read(self, tree: ast.Module) -> None:
        todo: list[tuple[ast.AST, Scope]] = [(tree, self._module)]
        while todo:
            node, scope = todo.pop()
            self._scope[node] = scope
            self.nodes.append(node)
            inner, inside = _inner(node, scope) if type(node) in OPENS else (scope, NONE)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                outer = scope.parent if isinstance(node, ast.Nonlocal) and scope.parent else self._module
                scope.elsewhere.update(dict.fromkeys(node.names, outer))
            for target, value in BINDS[type(node)](node) if type(node) in BINDS else ():
                _bind(target, value, scope)
            if isinstance(node, ast.Assign):
                for target in filter(is_own, node.targets):
                    self._own.setdefault(target.attr, []).append(node.value)
            grown = node.func if isinstance(node, ast.Call) else node
            if isinstance(grown, (ast.Attribute, ast.Subscript)) and isinstance(grown.value, ast.Name):
                adds = grown.attr in GROWING if isinstance(grown, ast.Attribute) else isinstance(grown.ctx, ast.Store)
                self._grown |= {grown.value.id} if adds else set()
            children = list(_children(node))
            self.parent.update(dict.fromkeys(children, node))
            todo.extend((child, inner if child in inside else scope) for child in reversed(children))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """As ast.iter_child_nodes gives them, without contexts and in a third of its time."""
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            yield from (item for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            yield value


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_own(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether this is `self.name`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _inner(node: ast.AST, scope: Scope) -> tuple[Scope, Set[ast.AST]]:
    """The scope that one of OPENS opens, and which of its children stand in it."""
    if isinstance(node, FUNCTIONS):
        inner = Scope(scope)
        given = node.args
        for argument in (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg):
            if argument:
                inner.bind(argument.arg, None)
        return inner, {node.body} if isinstance(node, ast.Lambda) else set(node.body)
    if isinstance(node, ast.ClassDef):
        return Scope(scope, is_class=True), set(node.body)
    return Scope(scope), set(_children(node))


def _bind(target: ast.expr | str | None, value: Leaf | Each, scope: Scope) -> None:
    """A target, or what is known to be a name, stands for a value in its scope."""
    if isinstance(target, str):
        scope.bind(target, value)
    elif isinstance(target, ast.Name):
        scope.bind(target.id, value)
    elif isinstance(target, ast.Starred):
        _bind(target.value, None, scope)
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(item, ast.Starred) for item in target.elts)
        for index, item in enumerate(target.elts):
            part: ast.expr | Each | None = None
            if isinstance(value, Each) and value.part is None and not starred:
                part = Each(value.iterable, index)
            elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) and not starred:
                part = value.elts[index]
            _bind(item, part, scope)


def _part(element: Element, part: int | None) -> ast.expr | None:
    if isinstance(element, tuple):
        return element[part] if part is not None and part < 2 else None
    if part is None:
        return element
    inside = isinstance(element, (ast.Tuple, ast.List)) and part < len(element.elts)
    return element.elts[part] if inside else None  # type: ignore[union-attr]


def _is_getattr(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id == "getattr"
    return named and len(call.args) >= 2 and not any(isinstance(item, ast.Starred) for item in call.args)
