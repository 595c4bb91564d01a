"""The Python files of a tree as modules whose functions call each other: what an imported name means.

Knows how an import names a file beside or below others; knows no sys.path, and runs nothing. A file is parsed when it
is first asked for.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LARGEST = 2_000_000  # bytes of a module that is looked into
DEEPEST = 5  # imports of imports


@dataclass(eq=False)
class PythonModule:
    """One file: its functions, by names that stand for one only, and its imports: dots in front, and the name."""

    path: str
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, tuple[int, str]] = field(default_factory=dict)


class Files:
    """The files of a tree by the names that an import may give them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: dict[str, list[str]] = {}  # by the last part of the module's name
        for path in paths:
            self._paths.setdefault((_parts(path) or ("",))[-1], []).append(path)

    def named(self, parts: list[str], level: int, importer: str) -> list[str]:
        """The files that may be this module; `level`: dots in front."""
        if level:
            package = os.path.normpath(importer).split(os.sep)
            parts = package[: max(len(package) - level, 0)] + parts
        found = self._paths.get(parts[-1], []) if parts else []
        whole, wanted = bool(level), tuple(parts)
        return [p for p in found if (_parts(p) if whole else _parts(p)[-len(wanted) :]) == wanted]


class Modules:
    """Looks up functions across the files of a tree."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._files = Files(paths)
        self._known: dict[str, PythonModule] = {}

    def at(self, path: str, tree: ast.Module | None = None) -> PythonModule:
        """The module of a file; empty where it cannot be read."""
        if path not in self._known:
            made = self._known[path] = PythonModule(path)
            nodes = list(ast.walk(tree or _parsed(path)))
            made.functions = functions(nodes)
            for node in nodes:
                _note(node, made)
        return self._known[path]

    def path(self, module: PythonModule, dotted: str, depth: int = 0) -> str:
        """A dotted name with what its first part is imported as, through imports of imports: `ops.add` as
        `torch.ops.ns.add`."""
        first, dot, rest = dotted.partition(".")
        level, target = module.imports.get(first, (0, ""))
        if not level and target.partition(".")[0] == "torch":
            return f"{target}{dot}{rest}"
        for other, name in self._meant(module, first, depth):
            found = self.path(other, name, depth + 1)
            if found != name:
                return f"{found}{dot}{rest}"
        return dotted

    def function(
        self, module: PythonModule, dotted: str, depth: int = 0
    ) -> tuple[PythonModule, ast.FunctionDef] | None:
        """The function of another file that a name of this one means, through imports of imports."""
        for other, name in self._meant(module, dotted, depth):
            function = other.functions.get(name)
            found = (other, function) if function else self.function(other, name, depth + 1)
            if found:
                return found
        return None

    def _meant(self, module: PythonModule, dotted: str, depth: int) -> Iterator[tuple[PythonModule, str]]:
        """The nearest modules that an imported name may be taken from, and what it is called there."""
        first, _, rest = dotted.partition(".")
        if first not in module.imports or depth > DEEPEST:
            return
        level, target = module.imports[first]
        *parts, name = f"{target}.{rest}".strip(".").split(".")
        mine = os.path.normpath(module.path).split(os.sep)
        found = self._files.named(parts, level, module.path)
        nearest = sorted(found, key=lambda path: (-_shared(mine, os.path.normpath(path).split(os.sep)), path))
        yield from ((self.at(path), name) for path in nearest[:3])


def functions(nodes: Iterable[ast.AST]) -> dict[str, ast.FunctionDef]:
    """The functions among these nodes, but methods and what `typing.overload` declares, by names that stand for one."""
    methods: set[ast.AST] = set()
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in nodes:  # a class comes before its methods
        if isinstance(node, ast.ClassDef):
            methods.update(node.body)
        elif isinstance(node, ast.FunctionDef) and node not in methods and not any(map(_overload, node.decorator_list)):
            found.setdefault(node.name, []).append(node)
    return {name: same[0] for name, same in found.items() if len(same) == 1}


def _overload(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).rpartition(".")[2] == "overload"


def _note(node: ast.AST, made: PythonModule) -> None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        text = ast.unparse(node.value) if isinstance(node.value, ast.Attribute) else ""
        if text.startswith("torch.ops."):
            made.imports.setdefault(node.targets[0].id, (0, text))
    elif isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            made.imports[name] = 0, alias.name if alias.asname else name
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            made.imports[alias.asname or alias.name] = node.level, f"{node.module or ''}.{alias.name}"


def _parsed(path: str) -> ast.Module:
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST + 1)
        return ast.parse(data if len(data) <= LARGEST else b"")
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _parts(path: str) -> tuple[str, ...]:
    """a/b/c.py -> a, b, c; a/b/__init__.py -> a, b."""
    parts = os.path.normpath(path).removesuffix(".py").split(os.sep)
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def _shared(first: list[str], second: list[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
