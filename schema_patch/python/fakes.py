"""Which functions of a Python module are the fakes of operators that return nothing any more.

Knows torch.library.register_fake, its older name and kernels for "Meta", as a call, a decorator, a method of a Library,
or behind a helper that is given the name and the function; knows no edit. What it cannot follow becomes a Stray.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from schema_patch.schemas.gone import Gone

from .calls import CallingModule, Stray, argument, named
from .names import ANY, FUNCTIONS, Function, Names

REGISTER = frozenset({"register_fake", "impl_abstract"})
META = "Meta"
OTHER = "another"  # an operator that is none of ours


@dataclass(frozen=True, slots=True)
class Fake:
    """A function that is registered as the fake of operators; `only` where it serves nothing else."""

    ops: tuple[str, ...]
    node: Function
    only: bool


@dataclass(frozen=True, slots=True)
class _Registration:
    """One registration: the expressions of the operator's name, the function and, if named, the Library."""

    name: ast.expr | None
    function: ast.expr | Function | None
    place: ast.Call
    library: ast.expr | None = None


def find(module: CallingModule) -> list[Fake]:
    """The fakes of operators that return nothing, in file order."""
    serves: dict[Function, set[str]] = {}
    handed: set[ast.AST] = set()  # expressions that name a function in its registration
    for registration in list(_registrations(module.names)):
        function = registration.function
        for _ in module.names.turns(registration.place):
            ops = _operators(module, registration)
            if function is None:
                continue
            handed.add(function)
            found = [function] if isinstance(function, FUNCTIONS) else module.names.functions(function)
            for one in found:
                if one is None and ops == {OTHER}:
                    continue
                if one is None:
                    message = "registers a fake that is no function of this file"
                    module.strays.append(Stray(min(ops - {OTHER}), registration.place, message))
                else:
                    serves.setdefault(one, set()).update(ops)
    fakes = []
    for node, ops in serves.items():
        if ops == {OTHER}:
            continue
        only = OTHER not in ops and not _used_elsewhere(module.names, node, handed)
        fakes.append(Fake(tuple(sorted(ops - {OTHER})), node, only))
    return fakes


def _registrations(names: Names) -> Iterator[_Registration]:
    helpers: dict[Function, tuple[str, ...]] = {}
    calls = [node for node in names.nodes if isinstance(node, ast.Call)]
    for call in calls:
        found = _read(names, call)
        if found is None:
            continue
        library, name, function = found
        parent, around = names.parent[call], names.function_around(call)
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _Registration(name, parent, call, library)
        elif isinstance(parent, ast.Call) and parent.func is call and parent.args:
            yield _Registration(name, parent.args[0], call, library)
        elif around and (own := _own_parameters(around, name, function)):
            helpers[around] = own
        else:
            yield _Registration(name, function, call, library)
    for call in calls if helpers else ():
        for helper in names.functions(call.func):
            if helper in helpers:
                parameters = [one.arg for one in helper.args.args]
                first, second = (argument(call, parameters.index(name), name) for name in helpers[helper])
                yield _Registration(first, second, call)


def _read(names: Names, call: ast.Call) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None] | None:
    """Library, name and function that a call registers as a fake; None where it registers none."""
    paths = names.paths(call.func)
    last = {path.rpartition(".")[2] for path in paths}
    if last & REGISTER:
        return None, argument(call, 0, "op"), argument(call, 1, "func")
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if "_register_fake" in last:
        return owner, argument(call, 0, "op_name"), argument(call, 1, "fn")
    if "impl" not in last:
        return None
    first, second, third = (argument(call, n, word) for n, word in enumerate(("qualname", "types", "dispatch_key")))
    if "torch.library.impl" not in paths:
        return (owner, first, second) if third and names.texts(third) == {META} else None
    if second and names.texts(second) == {META}:
        return None, first, argument(call, 2, "func")
    return (first, second, None) if third and names.texts(third) == {META} else None


def _operators(module: CallingModule, registration: _Registration) -> set[str]:
    """Those of the operators that a registration names, and OTHER where it may name one that is none of them."""
    name = registration.name
    paths = module.names.paths(name) if name else ()
    texts = {path.removeprefix("torch.ops.").replace(".", "::", 1) for path in paths if path.startswith("torch.ops.")}
    texts = texts or set(module.names.texts(name) if name else {ANY})
    if registration.library is not None:
        spaces = _spaces(module.names, registration.library)
        texts = {text if "::" in text else f"{space}::{text}" for space in spaces for text in texts}
    dotted = ("torch.ops." + text.replace("::", ".") for text in texts)
    found = {one.op if (one := named(path, module.gone)) else OTHER for path in dotted}
    if found == {OTHER} and any(_may_be(text, module.gone) for text in texts):
        module.strays.append(Stray("", registration.place, "registers a fake under a name that is computed"))
    return found


def _spaces(names: Names, library: ast.expr) -> Iterator[str]:
    """The namespaces that a Library may be of."""
    for leaf in names.leaves(library):
        made = isinstance(leaf, ast.Call) and any(path.endswith("Library") for path in names.paths(leaf.func))
        yield from names.texts(leaf.args[0]) if made and isinstance(leaf, ast.Call) and leaf.args else (ANY,)


def _may_be(text: str, gone: Gone) -> bool:
    """Whether a name of which a part is computed may be that of such an operator."""
    pattern = re.compile(".*".join(map(re.escape, text.split(ANY))))
    return ANY in text and any(pattern.fullmatch(f"{one.namespace or ''}::{one.op}") for one in gone)


def _used_elsewhere(names: Names, function: Function, handed: set[ast.AST]) -> bool:
    return any(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node not in handed
        and function in names.functions(node)
        for node in names.nodes
    )


def _own_parameters(function: Function, *nodes: ast.expr | None) -> tuple[str, ...] | None:
    """The names of these nodes, if each is a parameter of the function."""
    names = {argument.arg for argument in function.args.args}
    found = tuple(node.id for node in nodes if isinstance(node, ast.Name) and node.id in names)
    return found if len(found) == len(nodes) else None
