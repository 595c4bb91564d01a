"""The string that an expression of a module is: constants, f-strings, sums, small functions, the elements of a loop.

Knows one module as a syntax tree; what is computed otherwise has no text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

Names = Mapping[str, ast.expr]
DEEPEST = 8  # names that stand for names
MANY = 500  # turns of a loop


class Texts:
    """Strings of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.loops: dict[ast.Call, ast.For] = {}
        self.turn: dict[str, ast.expr] = {}
        again: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (target.id for target in targets if isinstance(target, ast.Name)):
                    again |= {name} & self.constants.keys()
                    self.constants[name] = node.value
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                again.add(node.target.id)
            elif isinstance(node, ast.For):
                self.loops |= {inner: node for inner in ast.walk(node) if isinstance(inner, ast.Call)}
        for name in again:
            self.constants.pop(name, None)

    def turns(self, call: ast.Call) -> Iterator[None]:
        """Goes through the loop around a call, if it is over what is written there: names stand for its elements."""
        loop = self.loops.get(call)
        elements = self.meant(loop.iter) if loop else None
        if loop and isinstance(elements, ast.Tuple | ast.List) and len(elements.elts) <= MANY:
            for element in elements.elts:
                self.turn = dict(_bound(loop.target, element))
                yield
            self.turn = {}
        else:
            yield

    def meant(self, node: ast.expr) -> ast.expr:
        """What a name stands for; anything else is itself."""
        for _ in range(DEEPEST):
            if not isinstance(node, ast.Name):
                break
            node = self.turn.get(node.id) or self.constants.get(node.id) or node
        return node

    def of(self, node: ast.expr, given: Names | None = None, depth: int = 0) -> str | None:
        """The text of an expression; `ns::op` for torch.ops.ns.op; None where it is computed."""
        given = given or {}
        if depth > DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Attribute) and (path := ast.unparse(node)).startswith("torch.ops."):
            return "::".join(path.split(".")[2:4])
        if isinstance(node, ast.Name):
            known = given.get(node.id) or self.turn.get(node.id) or self.constants.get(node.id)
            return self.of(known, {}, depth + 1) if known is not None else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], given, depth)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, given, depth)
        if isinstance(node, ast.FormattedValue) and node.conversion in (-1, ord("s")) and node.format_spec is None:
            return self.of(node.value, given, depth + 1)
        return self._called(node, given, depth) if isinstance(node, ast.Call) else None

    def _joined(self, nodes: list[ast.expr], given: Names, depth: int) -> str | None:
        parts = [self.of(node, given, depth + 1) for node in nodes]
        return None if None in parts else "".join(map(str, parts))

    def _called(self, node: ast.Call, given: Names, depth: int) -> str | None:
        """`prefixed("op")`, where the function does nothing but return a text made of its arguments."""
        function = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        body = [s for s in function.body if not _is_docstring(s)] if function else []
        if not function or len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            return None
        names = [argument.arg for argument in function.args.args]
        values = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
        told = {name: self.of(value, given, depth + 1) for name, value in values.items()}
        inner = {name: ast.Constant(text) for name, text in told.items() if text is not None}
        return self.of(body[0].value, inner, depth + 1)


def _bound(target: ast.expr, element: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, element
    elif isinstance(target, ast.Tuple) and isinstance(element, ast.Tuple | ast.List):
        for inner, value in zip(target.elts, element.elts, strict=False):
            yield from _bound(inner, value)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
