"""Which parameters a Python function writes: in-place methods, `out=`, item assignment, torch.ops, Triton's tl.store.

The three answers of mutation/infer.py, over one file. A call that leaves the file is unknown, unless it is torch's own
or an operator of which `known` says what it writes. Knows syntax trees only; runs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from .mutation.infer import Answer, Kind

VIEWS = frozenset(
    "view unsqueeze squeeze select narrow transpose t permute expand expand_as as_strided detach flatten_view "
    "view_as unflatten swapaxes movedim unbind chunk split T mT data real diagonal unfold".split()
)
NOT_IN_PLACE = frozenset({"requires_grad_", "resize_", "set_", "retain_grad_", "__init__", "share_memory_"})
PURE = frozenset(
    "torch F math np len int float bool str isinstance range min max abs sum print tuple list zip enumerate triton "
    "cdiv functional empty_like getattr hasattr type id repr sorted assert_close logger warnings".split()
)
MAPPED = frozenset({"make_block_ptr", "advance", "to", "make_tensor_descriptor", "multiple_of", "max_contiguous"})
STORES = frozenset(
    "store atomic_add atomic_max atomic_min atomic_xchg atomic_cas atomic_or atomic_and atomic_xor".split()
)
Writes = Mapping[str, Sequence[int]]  # operator -> positions of the arguments that it writes
Found = tuple[str, int, str]  # "written" or "unknown", line, why


def answers(
    function: ast.FunctionDef, path: str, functions: Mapping[str, ast.FunctionDef], known: Writes
) -> dict[str, Answer]:
    """What happens to each parameter of a function."""
    effects = _Flow(functions, known).of(function)
    result = {}
    for name in _names(function):
        found = effects.get(name, [])
        written = [line for kind, line, _ in found if kind == "written"]
        unknown = [(line, why) for kind, line, why in found if kind == "unknown"]
        if written:
            result[name] = Answer(name, Kind.WRITTEN, ((path, written[0]),))
        elif unknown:
            result[name] = Answer(name, Kind.UNKNOWN, (), f"{unknown[0][1]}: {path}:{unknown[0][0]}")
        else:
            result[name] = Answer(name, Kind.READ)
    return result


def _names(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


class _Flow:
    def __init__(self, functions: Mapping[str, ast.FunctionDef], known: Writes) -> None:
        self.functions = functions
        self.known = known
        self.done: dict[str, dict[str, list[Found]]] = {}

    def of(self, function: ast.FunctionDef) -> dict[str, list[Found]]:
        """The effects on each parameter; each function once, recursion cut."""
        if function.name not in self.done:
            self.done[function.name] = {}
            one = _One(self, function)
            one.run()
            self.done[function.name] = one.effects
        return self.done[function.name]


class _One:
    """One function."""

    def __init__(self, flow: _Flow, function: ast.FunctionDef) -> None:
        self.flow = flow
        self.function = function
        self.names = {name: {name} for name in _names(function)}
        self.effects: dict[str, list[Found]] = {}

    def run(self) -> None:
        for _ in range(2):  # a name may be used in a loop before its last assignment
            for node in ast.walk(self.function):
                if isinstance(node, ast.Assign):
                    self.assign(node.targets, node.value)
                elif isinstance(node, ast.AnnAssign) and node.value is not None:
                    self.assign([node.target], node.value)
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Subscript):
                        self.effect("written", self.roots(target.value), node.lineno)
            if isinstance(node, ast.Call):
                self.call(node)

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        for target in targets:
            if isinstance(target, ast.Name):
                roots = self.roots(value)
                if roots:
                    self.names[target.id] = self.names.get(target.id, set()) | roots
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                for one, other in zip(target.elts, value.elts, strict=True):
                    self.assign([one], other)

    def roots(self, node: ast.expr) -> set[str]:
        """The parameters that an expression shares memory with."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, set())
        if isinstance(node, ast.Subscript):
            return self.roots(node.value)
        if isinstance(node, ast.Attribute):
            return self.roots(node.value) if node.attr in VIEWS else set()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and self.triton:
            return self.roots(node.left) | self.roots(node.right)
        if isinstance(node, ast.IfExp):
            return self.roots(node.body) | self.roots(node.orelse)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in VIEWS or (name.endswith("_") and not name.endswith("__")):
                return self.roots(node.func.value)
            if name in MAPPED and self.triton:
                arguments = [*node.args, *(k.value for k in node.keywords if k.arg in ("base", None))]
                return self.roots(node.func.value) | (self.roots(arguments[0]) if arguments else set())
        return set()

    @property
    def triton(self) -> bool:
        return any("jit" in ast.unparse(decorator) for decorator in self.function.decorator_list)

    def effect(self, kind: str, roots: set[str], line: int, why: str = "") -> None:
        for root in roots:
            self.effects.setdefault(root, []).append((kind, line, why))

    def call(self, node: ast.Call) -> None:
        function, line = node.func, node.lineno
        for keyword in node.keywords:
            if keyword.arg == "out":
                items = keyword.value.elts if isinstance(keyword.value, ast.Tuple) else [keyword.value]
                for item in items:
                    self.effect("written", self.roots(item), line)
        if isinstance(function, ast.Subscript):  # kernel[grid](…)
            self.local(_dotted(function.value).rpartition(".")[2], node)
            return
        dotted = _dotted(function)
        name = dotted.rpartition(".")[2] or (function.attr if isinstance(function, ast.Attribute) else "")
        if self.triton and name in STORES:
            base = node.args[0] if dotted.startswith("tl.") and node.args else None
            self.effect("written", self.roots(base) if base is not None else self.method_roots(function), line)
        elif dotted.startswith("torch.ops."):
            self.operator(dotted, node)
        elif isinstance(function, ast.Attribute) and self.roots(function.value):
            if name.endswith("_") and not name.endswith("__") and name not in NOT_IN_PLACE:
                self.effect("written", self.roots(function.value), line)
        elif name in self.flow.functions and dotted == name:
            self.local(name, node)
        elif dotted.split(".")[0] not in PURE and not dotted.startswith("tl.") and name not in VIEWS:
            for item in [*node.args, *(k.value for k in node.keywords)]:
                self.effect("unknown", self.roots(item), line, f"passed to {dotted or 'a call'}")
        elif name.endswith("_") and not name.endswith("__") and node.args:  # torch.relu_(x)
            self.effect("written", self.roots(node.args[0]), line)

    def method_roots(self, function: ast.expr) -> set[str]:
        return self.roots(function.value) if isinstance(function, ast.Attribute) else set()

    def operator(self, dotted: str, node: ast.Call) -> None:
        """torch.ops.ns.op(…)"""
        parts = dotted.removeprefix("torch.ops.").split(".")
        writes = self.flow.known.get("::".join(parts[:2]))
        for number, item in enumerate(node.args):
            if writes is None:
                self.effect("unknown", self.roots(item), node.lineno, f"passed to {dotted}")
            elif number in writes:
                self.effect("written", self.roots(item), node.lineno)

    def local(self, name: str, node: ast.Call) -> None:
        """A function or Triton kernel of this file."""
        target = self.flow.functions.get(name)
        given: list[tuple[str, ast.expr]] = [(k.arg, k.value) for k in node.keywords if k.arg]
        if target is not None:
            given += zip(_names(target), node.args, strict=False)
            effects = self.flow.of(target)
            for parameter, item in given:
                for kind, line, why in effects.get(parameter, ())[:8]:
                    self.effect(kind, self.roots(item), line if kind == "written" else node.lineno, why)
            return
        for item in [*node.args, *(value for _, value in given)]:
            self.effect("unknown", self.roots(item), node.lineno, f"passed to {name or 'a kernel'}, not in this file")
