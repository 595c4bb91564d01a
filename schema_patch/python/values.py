"""What a Python expression can stand for, and what evaluating it writes: which parameter's memory, and how surely.

Knows torch's and Triton's names for what is a view, a copy or written in place; statements are in pyflow.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from schema_patch.schemas.inferred import Kind, Native

from .modules import Module

VIEWS = frozenset(
    "view unsqueeze squeeze select narrow transpose t permute expand expand_as as_strided detach flatten_view "
    "view_as unflatten swapaxes movedim unbind chunk split T mT data real diagonal unfold view_as_real "
    "view_as_complex tensor_split".split()
)
# A copy, unless nothing would change.
PERHAPS = frozenset("contiguous reshape flatten ravel to type type_as float half bfloat16 double int long cuda".split())
NOT_IN_PLACE = frozenset({"requires_grad_", "resize_", "set_", "retain_grad_", "__init__", "share_memory_"})
PURE = frozenset(
    "torch F math np len int float bool str isinstance range min max abs sum print tuple list zip enumerate triton "
    "cdiv functional empty_like getattr hasattr type id repr sorted assert_close logger warnings".split()
)
NOT_PURE = ("torch.distributed", "torch.ops", "torch.utils", "torch.compile", "torch.jit", "tl.inline_asm")
MODULES = ("torch.", "F.", "dist.", "torch_")  # whose functions may be called `relu_` as a tensor's methods are
MAPPED = frozenset({"make_block_ptr", "advance", "to", "make_tensor_descriptor", "multiple_of", "max_contiguous"})
STORES = re.compile(r"\w*store|atomic_\w+")
NUMBERS = frozenset({"size", "stride", "numel", "dim", "len", "int", "item", "cdiv", "ndim", "program_id"})
NO_TENSOR = re.compile(
    r"(?:\b(?:int|float|bool|str|None|list|List|tuple|Tuple|Sequence|Optional|Union|Literal|torch\.\w*(?:dtype|device"
    r"|Size|Generator)|dict|Dict|Callable|Any)\b|[\[\]|,.\s'\"]|\w*SymInt)+"
)
LISTS = re.compile(r"\b(?:list|List|Sequence|tuple|Tuple|dict|Dict)\b")

Origin = tuple[str, str]  # a parameter, and what of it: its memory, a list of tensors, or perhaps a copy
Value = frozenset[Origin]
MEMORY, LIST, MAYBE = "memory", "list", "perhaps"
NOTHING: Value = frozenset()


@dataclass
class Found:
    """What a function does to its parameters, and which of them it hands back."""

    effects: dict[str, dict[tuple[str, int, str], None]] = field(default_factory=dict)  # ("written", line, why)
    returned: Value = NOTHING
    returns: list[tuple[Value, ...]] = field(default_factory=list)  # of each statement: the values of the tuple, or one


class Flow:
    """The functions of a tree, and what is known of operators."""

    known: Mapping[str, Sequence[int]]

    def of(self, module: Module, function: ast.FunctionDef) -> Found:
        raise NotImplementedError

    def native(self, name: str) -> Native | None:
        """The function that C++ hands to Python by this name."""
        raise NotImplementedError

    def path(self, module: Module, dotted: str) -> str:
        """A dotted name as torch has it, where it is imported or assigned by another."""
        raise NotImplementedError

    def elsewhere(self, module: Module, dotted: str) -> tuple[Module, ast.FunctionDef] | None:
        """The function of another file that a name means."""
        raise NotImplementedError


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in _arguments(function)]


def names_of(node: ast.AST) -> Iterator[str]:
    return (item.id for item in ast.walk(node) if isinstance(item, ast.Name))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in NOT_IN_PLACE


def _given(argument: ast.arg, triton: bool) -> Value:
    kind = ast.unparse(argument.annotation) if argument.annotation and not triton else ""
    if kind and ("Tensor" not in kind and NO_TENSOR.fullmatch(kind)):
        return NOTHING
    return frozenset({(argument.arg, LIST if LISTS.search(kind) else MEMORY)})


class Values:
    """Expressions of one function."""

    def __init__(self, flow: Flow, module: Module, function: ast.FunctionDef) -> None:
        self.flow = flow
        self.module = module
        self.function = function
        self.triton = any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
        self.names: dict[str, Value] = {a.arg: _given(a, self.triton) for a in _arguments(function)}
        self.numbers = {a.arg for a in _arguments(function) if a.annotation and ast.unparse(a.annotation) == "int"}
        self.local_functions: dict[str, ast.FunctionDef] = {}
        self.found = Found()

    def effect(self, kind: str, value: Value, line: int, why: str = "") -> None:
        for name, _ in value:
            self.found.effects.setdefault(name, {})[(kind, line, why)] = None

    def write(self, value: Value, line: int) -> None:
        self.effect("written", frozenset(o for o in value if o[1] != MAYBE), line)
        doubtful = frozenset(o for o in value if o[1] == MAYBE)
        self.effect("unknown", doubtful, line, "written where what came before makes no copy")

    def bind(self, target: ast.expr, value: Value, number: bool = False) -> None:
        """`target = value`."""
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            (self.numbers.add if number else self.numbers.discard)(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self.bind(item, _element(value), number)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Subscript):
            self.value(target.slice)
            held = self.value(target.value)
            self.write(frozenset(o for o in held if o[1] != LIST), target.lineno)
        elif isinstance(target, ast.Attribute):
            self.effect("unknown", self.value(target.value), target.lineno, f"its .{target.attr} is assigned to")

    def each(self, target: ast.expr, node: ast.expr) -> None:
        """`for target in node`."""
        name = _dotted(node.func) if isinstance(node, ast.Call) else ""
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
            self.bind(target, _element(self.value(node)))

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
        self.bind(node.target, value)
        return value

    def of_Starred(self, node: ast.Starred) -> Value:
        return _element(self.value(node.value))

    def of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        held = frozenset().union(*(self.value(item) for item in node.elts)) if node.elts else NOTHING
        return frozenset((name, LIST if what == MEMORY else what) for name, what in held)

    of_List = of_Set = of_Tuple

    def of_Subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value)
        self.value(node.slice)
        return frozenset(
            (name, MEMORY if what == LIST or self.basic(node.slice) else MAYBE)
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
        return function is not None and _last(function) in NUMBERS

    def of_Attribute(self, node: ast.Attribute) -> Value:
        value = self.value(node.value)
        return value if node.attr in VIEWS else NOTHING

    def of_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        return left | right if self.triton and isinstance(node.op, ast.Add | ast.Sub) else NOTHING

    def of_IfExp(self, node: ast.IfExp) -> Value:
        self.value(node.test)
        return self.value(node.body) | self.value(node.orelse)

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        return frozenset().union(*(self.value(item) for item in node.values))

    def of_Lambda(self, node: ast.Lambda) -> Value:
        before = dict(self.names)
        self.names |= {a.arg: NOTHING for a in node.args.args}
        self.value(node.body)
        self.names = before
        return NOTHING

    def of_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        before = dict(self.names)
        for part in node.generators:
            self.each(part.target, part.iter)
            for test in part.ifs:
                self.value(test)
        value = self.value(node.elt)
        self.names = before
        return frozenset((name, LIST if what == MEMORY else what) for name, what in value)

    of_SetComp = of_GeneratorExp = of_ListComp

    def of_Call(self, node: ast.Call) -> Value:
        function, line = node.func, node.lineno
        values = [self.value(item) for item in node.args]
        named = [(keyword.arg or "", self.value(keyword.value)) for keyword in node.keywords]
        if isinstance(function, ast.Subscript):  # kernel[grid](…)
            self.value(function.slice)
            return self.local(_kernel(function.value), values, named, line, _dotted(function.value))
        dotted, name = _dotted(function), _last(function)
        base = self.value(function.value) if isinstance(function, ast.Attribute) else NOTHING
        if self.triton and STORES.fullmatch(name):
            self.write(values[0] if dotted.startswith("tl.") and values else base, line)
        elif self.triton and name in MAPPED:
            return base | (values or [next((value for key, value in named if key == "base"), NOTHING)])[0]
        elif (meant := self.meant(dotted)).startswith("torch.ops."):
            self.operator(meant, values, named, line)
        elif base:
            return self.method(name, base, named, line)
        elif isinstance(function, ast.Attribute) and _in_place(name) and not dotted.startswith(MODULES):
            return NOTHING  # a method of a tensor that was made here: it reads its arguments
        elif dotted == name and (name in self.local_functions or name in self.module.functions):
            return self.local(name, values, named, line)
        elif found := self.flow.elsewhere(self.module, dotted):
            return self.called(*found, values, named, line)
        elif native := self.native(node, dotted):
            return self.bound(native, dotted, values, named, line)
        elif dotted.startswith(NOT_PURE) or (dotted.split(".")[0] not in PURE and not dotted.startswith("tl.")):
            given = frozenset().union(*values, *(value for _, value in named))
            self.effect("unknown", given, line, f"passed to {dotted or 'a call'}")
        else:
            return self.pure(name, node, values, named)
        return NOTHING

    def meant(self, dotted: str) -> str:
        """A dotted name as torch has it, unless a parameter is called by its first part."""
        return dotted if self.names.get(dotted.partition(".")[0]) else self.flow.path(self.module, dotted)

    def native(self, node: ast.Call, dotted: str) -> Native | None:
        """The C++ behind a function of a module that is imported and is no file of the tree."""
        first = dotted.partition(".")[0]
        if first in PURE or first not in self.module.imports or any(isinstance(a, ast.Starred) for a in node.args):
            return None
        return self.flow.native(dotted.rpartition(".")[2])

    def bound(
        self, native: Native, dotted: str, values: Sequence[Value], named: Sequence[tuple[str, Value]], line: int
    ) -> Value:
        """What a function of C++ does with these arguments."""
        answers = {answer.name: answer for answer in native.answers}
        given = [*zip(native.answers, values, strict=False), *((answers.get(name), value) for name, value in named)]
        for answer, value in given:
            if answer is not None and answer.kind is Kind.WRITTEN:
                self.write(value, line)
            elif answer is None or answer.kind is Kind.UNKNOWN:
                self.effect("unknown", value, line, f"passed to {dotted}{f' ({answer.reason})' if answer else ''}")
        every = frozenset().union(*values, *(value for _, value in named))
        return NOTHING if native.fresh else frozenset((name, MAYBE) for name, _ in every)

    def method(self, name: str, base: Value, named: Sequence[tuple[str, Value]], line: int) -> Value:
        """A method of a tensor that was given, or of a list of them."""
        self.out(named, line)
        if name in PERHAPS:
            return frozenset((root, MAYBE) for root, _ in base)
        if name in ("pop", "get", "values", "items"):
            return _element(base)
        if _in_place(name):
            self.write(base, line)
        return base if name in VIEWS or name.endswith("_") else NOTHING

    def pure(self, name: str, node: ast.Call, values: Sequence[Value], named: Sequence[tuple[str, Value]]) -> Value:
        """A function of torch or of Python: it writes `out`, and the first argument where its name says so."""
        self.out(named, node.lineno)
        first = values[0] if values else NOTHING
        inplace = any(k.arg == "inplace" and getattr(k.value, "value", False) is True for k in node.keywords)
        if _in_place(name) or inplace:
            self.write(first, node.lineno)
        if name in PERHAPS and not self.triton:
            return frozenset((root, MAYBE) for root, _ in first)
        return first if name in VIEWS or name in ("list", "tuple", "reversed") or name.endswith("_") else NOTHING

    def out(self, named: Sequence[tuple[str, Value]], line: int) -> None:
        for key, value in named:
            if key == "out":
                self.write(value, line)

    def operator(self, dotted: str, values: Sequence[Value], named: Sequence[tuple[str, Value]], line: int) -> None:
        """torch.ops.ns.op(…)"""
        parts = dotted.removeprefix("torch.ops.").split(".")
        if parts[0] == "aten":
            self.out(named, line)
            if len(parts) > 1 and _in_place(parts[1]) and values:
                self.write(values[0], line)
            return
        writes = self.flow.known.get("::".join(parts[:2]))
        for number, value in enumerate(values):
            if writes is None:
                self.effect("unknown", value, line, f"passed to {dotted}")
            elif number in writes:
                self.write(value, line)
        for _, value in named if writes != () else ():
            self.effect("unknown", value, line, f"passed to {dotted}")

    def local(
        self, name: str, values: Sequence[Value], named: Sequence[tuple[str, Value]], line: int, dotted: str = ""
    ) -> Value:
        """A function or Triton kernel of this file, or of one that it imports from."""
        target = self.local_functions.get(name) or self.module.functions.get(name)
        if target is not None:
            return self.called(self.module, target, values, named, line)
        found = self.flow.elsewhere(self.module, dotted or name)
        if found:
            return self.called(*found, values, named, line)
        what = f"passed to {name or 'a kernel'}, not followed"
        self.effect("unknown", frozenset().union(*values, *(value for _, value in named)), line, what)
        return NOTHING

    def called(
        self,
        module: Module,
        target: ast.FunctionDef,
        values: Sequence[Value],
        named: Sequence[tuple[str, Value]],
        line: int,
    ) -> Value:
        """What a function does with these arguments."""
        found = self.flow.of(module, target)
        given = dict(zip(parameters(target), values, strict=False)) | dict(named)
        for parameter, value in given.items():
            for kind, at, why in found.effects.get(parameter, ()):
                place = at if module is self.module else line  # in this file
                if kind == "written":
                    self.write(value, place)
                else:
                    self.effect(kind, value, line, why)
        returned = ((given.get(parameter, NOTHING), what) for parameter, what in found.returned)
        return frozenset(
            (root, MAYBE if MAYBE in (own, what) else own) for value, what in returned for root, own in value
        )


def _element(value: Value) -> Value:
    """A part of a tensor, or an element of a list of tensors."""
    return frozenset((name, MEMORY if what == LIST else what) for name, what in value)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _kernel(node: ast.expr) -> str:
    """The name of a kernel in `kernel[grid]` and `wrap_triton(kernel)[grid]`."""
    if isinstance(node, ast.Call) and node.args and _last(node.func) in ("wrap_triton", "capture_triton"):
        return _last(node.args[0])
    return _last(node)
