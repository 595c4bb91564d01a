"""What calling something in Python writes and gives back: methods, torch's functions, operators, the tree's functions.

Knows torch's and Triton's names for it. What is called and not known here may do anything with what it is given.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from schema_patch.schemas import aten
from schema_patch.schemas.inferred import Kind, Native

from .modules import PythonModule
from .values import (
    ARRAY,
    LIST,
    MAYBE,
    MEMORY,
    NOTHING,
    OUT_OF_TORCH,
    PERHAPS,
    VIEWS,
    Constants,
    Value,
    Values,
    computed,
    defaults,
    dotted_name,
    element,
    held,
    in_place,
    known_as,
    last,
    parameters,
    perhaps,
    rest,
)

PURE = frozenset(
    "torch F math np len int float bool str isinstance range min max abs sum print tuple list zip enumerate triton "
    "cdiv functional empty_like getattr hasattr type id repr sorted assert_close logger warnings dict set iter next "
    "reversed any all".split()
)
NOT_PURE = (
    "torch.distributed", "torch.ops", "torch.utils", "torch.compile", "torch.jit", "torch.func", "torch.vmap",
    "torch.cond", "torch.while_loop", "torch.cuda.nccl", "torch.cuda.comm", "tl.inline_asm",
)  # fmt: skip
MODULES = ("torch.", "F.", "dist.", "torch_")  # whose functions may be called `relu_` as a tensor's methods are
MAPPED = frozenset({"make_block_ptr", "advance", "to", "make_tensor_descriptor", "multiple_of", "max_contiguous"})
STORES = re.compile(r"\w*store|atomic_\w+")
CARRIES = frozenset("list tuple reversed zip enumerate sorted iter dict set".split())  # containers of what they get
GROWS = frozenset("append appendleft extend insert update setdefault".split())  # no tensor has a method of such a name
TAKES_OUT = frozenset("pop popleft get values items setdefault copy".split())
# NumPy's, and its arrays'.
ARRAY_WRITES = frozenset("fill sort put partition itemset resize setfield byteswap".split())
NUMPY_WRITES = frozenset("copyto put place putmask fill_diagonal put_along_axis at shuffle nan_to_num".split())
GIVES = frozenset({"next", "max", "min"})  # one of what they get
SEES_ALL = frozenset({"exec", "eval", "vars", "locals", "globals"})
INPLACE = frozenset(  # of torch.nn.functional: their last parameter
    "relu relu6 elu selu celu leaky_relu rrelu hardtanh hardswish hardsigmoid silu mish threshold dropout dropout1d "
    "dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()
)
EMBEDS = frozenset({"embedding", "embedding_bag"})  # with `max_norm` they write what they look into
UNARY = frozenset(  # of NumPy: what comes second is where the result goes
    "negative positive absolute abs fabs sqrt cbrt exp exp2 expm1 log log2 log10 log1p square sign sin cos tan sinh "
    "cosh tanh arcsin arccos arctan rint floor ceil trunc reciprocal conj conjugate invert logical_not isnan isinf "
    "isfinite".split()
)
FIRST = ("input", "self", "tensor", "tensors")  # names of the argument that torch's functions take first


@dataclass(slots=True)
class Call:
    """A call, with the values of its arguments; `spread`: some stand behind `*` or `**`."""

    node: ast.Call
    name: str
    dotted: str
    values: list[Value]
    named: dict[str, Value]
    spread: bool

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def every(self) -> Value:
        return NOTHING.union(*self.values, *self.named.values())

    @property
    def first(self) -> Value:
        return self.values[0] if self.values else next((self.named[key] for key in FIRST if key in self.named), NOTHING)


class PythonCalls(Values):
    """PythonCalls in one function."""

    def of_Call(self, node: ast.Call) -> Value:
        function = node.func
        values = [self.value(item) for item in node.args]
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            named[keyword.arg or ""] = named.get(keyword.arg or "", NOTHING) | self.value(keyword.value)
        spread = any(isinstance(item, ast.Starred) for item in node.args) or any(k.arg is None for k in node.keywords)
        call = Call(node, last(function), dotted_name(function), values, named, spread)
        if isinstance(function, ast.Subscript):  # kernel[grid](…)
            self.value(function.slice)
            self.value(function.value)
            call.name, call.dotted = _kernel(function.value), dotted_name(function.value)
            return self.local(call)
        base = self.value(function.value) if isinstance(function, ast.Attribute) else NOTHING
        if self.triton and STORES.fullmatch(call.name):
            self.write(values[0] if call.dotted.startswith("tl.") and values else base, call.line)
            return NOTHING
        if self.triton and call.name in MAPPED:
            return base | (values[0] if values else named.get("base", NOTHING))
        return self.by_name(call, base)

    def by_name(self, call: Call, base: Value) -> Value:
        name, dotted, function = call.name, call.dotted, call.node.func
        if (meant := self.meant(dotted)).startswith("torch.ops."):
            return self.operator(meant, call)
        if dotted in SEES_ALL:
            self.effect("unknown", NOTHING.union(*self.names.values()), call.line, f"{name} sees every name")
        if name in GROWS and isinstance(function, ast.Attribute) and not self.triton:
            self.keep(function.value, call.every, call.line)
            return element(base | call.every) if name == "setdefault" else NOTHING
        if base:
            return self.method(call, base)
        if isinstance(function, ast.Attribute) and in_place(name) and not dotted.startswith(MODULES):
            return NOTHING  # a method of a tensor that was made here: it reads its arguments
        if dotted == name and (name in self.local_functions or name in self.module.functions):
            return self.local(call)
        if found := self.flow.modules.function(self.module, dotted):
            return self.called(*found, call)
        if native := self.native(call):
            return self.bound(native, call)
        if dotted.startswith(NOT_PURE) or (dotted.split(".")[0] not in PURE and not dotted.startswith("tl.")):
            taken = NOTHING if isinstance(function, ast.Attribute) else self.value(function)
            self.effect("unknown", call.every | taken, call.line, f"passed to {dotted or 'a call'}")
            return NOTHING
        return self.pure(call)

    def meant(self, dotted: str) -> str:
        """A dotted name as torch has it, unless a parameter is called by its first part."""
        return dotted if self.names.get(dotted.partition(".")[0]) else self.flow.modules.path(self.module, dotted)

    def native(self, call: Call) -> Native | None:
        """The C++ behind a function of a module that is imported and is no file of the tree."""
        first = call.dotted.partition(".")[0]
        if first in PURE or first not in self.module.imports or call.spread:
            return None
        return self.flow.natives.get(call.dotted.rpartition(".")[2])

    def bound(self, native: Native, call: Call) -> Value:
        """What a function of C++ does with these arguments."""
        answers = {answer.name: answer for answer in native.answers}
        given = [*zip(native.answers, call.values, strict=False)]
        for answer, value in (*given, *((answers.get(name), value) for name, value in call.named.items())):
            if answer is not None and answer.kind is Kind.WRITTEN:
                self.write(value, call.line)
            elif answer is None or answer.kind is Kind.UNKNOWN:
                why = f"passed to {call.dotted}{f' ({answer.reason})' if answer else ''}"
                self.effect("unknown", value, call.line, why)
        return NOTHING if native.fresh else perhaps(call.every)

    def method(self, call: Call, base: Value) -> Value:
        """A method of a tensor that was given, or of a list of them."""
        name = call.name
        self.out(call)
        if name in PERHAPS:
            return perhaps(base)
        if name in aten.REPLACES:
            self.effect("unknown", base, call.line, "it is given other data")
        if name in TAKES_OUT:
            return element(frozenset(o for o in base if o[1] != ARRAY))
        if name in ARRAY_WRITES:
            self.write(frozenset(o for o in base if o[1] == ARRAY), call.line)
        if in_place(name):
            self.write(base, call.line)
        if name in OUT_OF_TORCH:
            return known_as(name, base)
        return base if name in VIEWS or name.endswith("_") else NOTHING

    def pure(self, call: Call) -> Value:
        """A function of torch or of Python: it writes `out`, and the first argument where its name says so."""
        name, first = call.name, call.first
        self.out(call)
        self.perhaps_written(call)
        if call.dotted.startswith("np."):
            if name in NUMPY_WRITES:
                self.write(first, call.line)
            if name in OUT_OF_TORCH and len(call.node.args) == 1 and not call.named:
                return known_as(name, first)
        if in_place(name) or any(k.arg == "inplace" and self.decided(k.value) for k in call.node.keywords):
            self.write(first, call.line)
        if call.dotted in CARRIES:
            return held([call.every])
        if call.dotted in GIVES:
            return element(call.every)
        if name in PERHAPS and not self.triton:
            return perhaps(first)
        return first if name in VIEWS or name.endswith("_") else computed(call.every)

    def perhaps_written(self, call: Call) -> None:
        """What a function writes if it is told to, by an option or by what stands in its place."""
        name, options = call.name, {keyword.arg: keyword.value for keyword in call.node.keywords}
        flags = [*(call.node.args[1:] if name in INPLACE else ()), options.get("inplace", ast.Constant(False))]
        if any(map(self.may_hold, flags)):
            self.effect("unknown", call.first, call.line, f"{name} may be told to write it")
        if call.dotted.startswith("np."):
            outs = call.values[1 if name in UNARY else 2 :]
        elif name in aten.TRAINS or (name in EMBEDS and ("max_norm" in options or len(call.values) > 3)):
            outs = [*call.values[1:], *(value for key, value in call.named.items() if key not in FIRST)]
        else:
            return
        self.effect("unknown", held(outs), call.line, f"passed to {name}, which may write it")

    def may_hold(self, flag: ast.expr) -> bool:
        """Whether an argument may be true; a number is not."""
        if isinstance(flag, ast.UnaryOp) and isinstance(flag.op, ast.USub):
            return False
        return flag.value is True if isinstance(flag, ast.Constant) else self.decided(flag) is not False

    def out(self, call: Call) -> None:
        self.write(call.named.get("out", NOTHING), call.line)

    def operator(self, dotted: str, call: Call) -> Value:
        """torch.ops.ns.op(…)"""
        parts = dotted.removeprefix("torch.ops.").split(".")
        if parts[0] == "aten" and len(parts) > 1:
            self.out(call)
            call.name = parts[1]
            self.perhaps_written(call)
            if in_place(parts[1]):
                self.write(call.first, call.line)
            shares = parts[1] in VIEWS or in_place(parts[1])
            return call.first if shares else perhaps(call.first) if parts[1] in PERHAPS else NOTHING
        writes = self.flow.known.get("::".join(parts[:2]))
        if writes == ():
            return NOTHING
        known = writes or ()
        for number, value in enumerate(() if call.spread else call.values):
            if writes is None:
                self.effect("unknown", value, call.line, f"passed to {dotted}")
            elif number in known:
                self.write(value, call.line)
        rest_ = call.every if call.spread else NOTHING.union(*call.named.values())
        self.effect("unknown", rest_, call.line, f"passed to {dotted}")
        return NOTHING.union(*(perhaps(value) for number, value in enumerate(call.values) if number in known))

    def local(self, call: Call) -> Value:
        """A function or Triton kernel of this file, or of one that it imports from."""
        target = self.local_functions.get(call.name) or self.module.functions.get(call.name)
        if target is not None:
            return self.called(self.module, target, call) | self.returns_of.get(call.name, NOTHING)
        if found := self.flow.modules.function(self.module, call.dotted or call.name):
            return self.called(*found, call)
        self.effect("unknown", call.every, call.line, f"passed to {call.name or 'a kernel'}, not followed")
        return NOTHING

    def called(self, module: PythonModule, target: ast.FunctionDef, call: Call) -> Value:
        """What a function does with these arguments."""
        found = self.flow.of(module, target, self.flags(target, call))
        given, spread = self.placed(target, call)
        for parameter, value in given.items():
            for kind, at, why in found.effects.get(parameter, ()):
                place = at if module is self.module else call.line  # in this file
                if parameter in spread:
                    self.effect("unknown", value, call.line, f"passed on by * to {target.name}")
                elif kind == "written":
                    self.write(value, place)
                else:
                    self.effect(kind, value, call.line, why)
        returned = ((given.get(parameter, NOTHING), what) for parameter, what in found.returned)
        return frozenset(
            (root, MAYBE if MAYBE in (own, what) else own if what == MEMORY or own == LIST else what)
            for value, what in returned
            for root, own in value
        )

    def flags(self, target: ast.FunctionDef, call: Call) -> Constants:
        """The parameters that this call makes true or false, which the function gives no other value."""
        if call.spread:
            return ()
        changed = {
            node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        names = [a.arg for a in (*target.args.posonlyargs, *target.args.args)]
        given: dict[str, ast.expr] = {
            name: node for name, node in defaults(target.args) if isinstance(node, ast.Constant)
        }
        given |= dict(zip(names, call.node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.node.keywords if keyword.arg}
        found = ((name, self.decided(node)) for name, node in given.items() if name not in changed)
        return tuple(sorted((name, value) for name, value in found if value is not None))

    def placed(self, target: ast.FunctionDef, call: Call) -> tuple[dict[str, Value], set[str]]:
        """The arguments by the parameters that they are given to, and the parameters of which it is not known which of
        the arguments behind `*` and `**` they are. What fits no parameter may be used in any way."""
        names = [a.arg for a in (*target.args.posonlyargs, *target.args.args)]
        more, options = rest(target)
        known = set(parameters(target))
        sure = next((n for n, item in enumerate(call.node.args) if isinstance(item, ast.Starred)), len(call.values))
        given = dict(zip(names, call.values[:sure], strict=False))
        given |= {name: value for name, value in call.named.items() if name in known}
        extra, others = call.values[len(names) : sure], [v for n, v in call.named.items() if n and n not in known]
        for name, values in ((more, extra), (options, others)):
            if name:
                given[name] = held(values)
            else:
                why = f"passed to {target.name}, which has no such parameter"
                self.effect("unknown", held(values), call.line, why)
        loose = held([*call.values[sure:], call.named.get("", NOTHING)])
        spread = (known - given.keys()) | ({more, options} - {""}) if call.spread else set()
        return given | {name: given.get(name, NOTHING) | loose for name in spread}, spread


def _kernel(node: ast.expr) -> str:
    """The name of a kernel in `kernel[grid]` and `wrap_triton(kernel)[grid]`."""
    if isinstance(node, ast.Call) and node.args and last(node.func) in ("wrap_triton", "capture_triton"):
        return last(node.args[0])
    return last(node)
