"""Do the samples tell a wrong operator from a right one? Wrong references, made by changing one thing, put to the judge.

    python tests/ops/mutants.py [OPERATOR...]      all operators take minutes (make mutants)

Each constant, operand, comparison, slice, argument and rounding that an operator's reference reaches is changed in turn,
and each fault of `borders` is planted; the wrong reference stands in for a kernel, and the judge of `check` sees its
results for the operator's samples, a fault's for those alone that the published library computes too.
Prints what was not told apart, and what of it cannot be, with the reason. Exit code 1 where the rest is more than 2 %.
"""

from __future__ import annotations

import ast
import copy
import inspect
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

import borders
import torch

from esimd_ops import ops, samples
from esimd_ops.reference import FAMILIES, parts
from esimd_ops.samples import domain
from esimd_ops.table import OPS
from esimd_ops.trials import judge

LEAST = 0.98
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
MOVED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
SUMS = ("sum", "mean", "einsum")
NULL_BLOCK = "slot 0 is vLLM's null block: nobody reads what becomes of it"
# What no sample can tell, and why: a mutant whose description, with or without its place, ends so is not counted.
KNOWN = {
    "step: 20.0 -> 25.01": "between the two log(1 + exp(x)) is x to the last bit",
    "step: half(torch.einsum('hvk,hk->hv', terms(S), terms(q)))": "rounded twice is rounded once",
    "_interleaved: 2 -> 1 in z.flatten(-2)": "results are compared in the shape of the output",
    "_one_token: 0 -> 1 in ssm_slot < 0": NULL_BLOCK,
    "_one_token: ssm_slot < 0: LtE": NULL_BLOCK,
    "_one_token: 0 -> 1 in conv_slot >= 0": NULL_BLOCK,
    "_one_token: conv_slot >= 0: Gt": NULL_BLOCK,
    "_one_token: 0 -> 1 in conv_state[0]": "asked for its shape alone",
    "_one_token: 0 -> -1 in conv_state[0]": "asked for its shape alone",
    "esimd_gdn_conv_fused_seq_spec: 0 -> 1 in conv_state[0]": "asked for its shape alone",
    "esimd_gdn_conv_fused_seq_spec: 0 -> -1 in conv_state[0]": "asked for its shape alone",
    "esimd_gdn_conv_fused_seq_spec: 0 -> 1 in ssm_state[0]": "asked for its shape alone",
    "esimd_gdn_conv_fused_seq_spec: 0 -> -1 in ssm_state[0]": "asked for its shape alone",
    **{
        f"esimd_gdn_conv_fused_seq_spec: ssm_state -> {other}": "zeros of any shape"
        for other in ("conv_bias", "A_log", "dt_bias", "token_indx", "num_accepted_tokens")
    },
    "_one_token: strict: True -> False": "as many of both",
    ": output -> z_out": "of one shape, and both hold poison before the call",
    ": z_out -> output": "of one shape, and both hold poison before the call",
    "_grouped: terms(x) @ terms(weight_of(e)).T * scale_of(e): Div": "by 1 in blockscale",
    "_grouped: half(terms(x) @ terms(weight_of(e)).T)": "rounded twice is rounded once",
    "esimd_moe_scatter_fused: 0 -> -1 in counts.cumsum(0)": "of one dimension",
    "flatten: 1 -> 2": "results are compared in the shape of the output",
    "flatten: 1 -> 0": "results are compared in the shape of the output",
    "keepdim: True -> False": "one row broadcasts to the same",
    "stable: True -> False": "torch sorts stably on the CPU in any case",
    "_sum_and_norm: (call.wide.hidden_states + call.wide.residual) * scalar: Div": "by 1, where there is no scalar",
    "_add_rms_norm: (terms(call.wide.hidden_states) + terms(call.wide.residual)) * scalar: Div": "the same",
    "accum_norm_add_norm: h1 -> w1": "of the same shape, which alone is used there",
    "accum_norm_add_norm: h1 -> w2": "of the same shape, which alone is used there",
    "accum_norm_add_norm: h1 -> out": "of the same shape, which alone is used there",
    "gate_out -> q_out": "both hold poison before the call",
    "product: terms(x) @ terms(weight).T * scale: Div": "by 1, where the weight has its own scales",
    "product: half(terms(x) @ terms(weight).T)": "rounded twice is rounded once, where nothing is multiplied after it",
    "q4_0_quantize: 0 -> -1": "no code is below 0 before it is clamped",
    "q4_0_quantize: 2 -> 3": "results are compared in the shape of the output",
    "q4_0_quantize: 2 -> 1": "results are compared in the shape of the output",
    "_grouped: rows.start < rows.stop: LtE": "a product of no rows",
    "_fp8_gemv: scale.numel() > 1: GtE": "one number, with a dimension or without",
    "_fp8_gemv: 1 -> 2": "one number, with a dimension or without",
    "_fp8_gemv: 1 -> 0": "one number, with a dimension or without",
    "_fp8_gemv: scale -> weight": "asked for its size alone",
    "_fp8_gemv: scale -> output": "asked for its size alone",
    "_fp8_gemv: output -> scale": "asked for its shape alone",
    "esimd_gemv_fp8_pern: output -> weight_scale": "asked for its shape alone",
    ": o0 -> s0": "asked for its shape alone",
    ": o1 -> s1": "asked for its shape alone",
    ": o2 -> s2": "asked for its shape alone",
    "block_weight: 2 -> 3": "without experts a weight has two dimensions",
    "esimd_moe_gather: T -> K": "rows past the last token: a slice ends with its tensor",
    "esimd_moe_gather: topk -> K": "rows past the last token: a slice ends with its tensor",
    "half(terms(c * call.wide.scale_with_root) @ terms(call.wide.proj_w).T)": "rounded twice is rounded once",
}


@dataclass(frozen=True)
class Mutant:
    """A changed function: its module, what was changed, and the module's whole tree with the change."""

    function: str
    change: str
    tree: ast.Module


def rough(value: object) -> object:
    """A rounding too many."""
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64):
        return value.half().to(value.dtype)
    return value


def changes(node: ast.AST, names: dict[str, list[str]]) -> Iterator[tuple[str, ast.AST]]:
    """Nodes to stand in a node's place, each with what it says."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        for new in (node.value + 1, node.value - 1):
            yield f"{node.value} -> {new}", ast.Constant(new)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        for new in (node.value * 10, node.value * 1.25 + 0.01):
            yield f"{node.value} -> {new}", ast.Constant(new)
    elif isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            new_op = SWAPPED[type(node.op)]()
            yield f"{ast.unparse(node)}: {type(new_op).__name__}", ast.BinOp(node.left, new_op, node.right)
        if isinstance(node.op, ast.Sub | ast.Div):
            yield f"{ast.unparse(node)}: turned round", ast.BinOp(node.right, node.op, node.left)
        if isinstance(node.op, ast.MatMult):
            yield f"half({ast.unparse(node)})", _call("rough", node)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in MOVED:
        new_op = MOVED[type(node.ops[0])]()
        yield f"{ast.unparse(node)}: {type(new_op).__name__}", ast.Compare(node.left, [new_op], node.comparators)
    elif isinstance(node, ast.Slice):
        if node.upper is not None:
            less = ast.BinOp(node.upper, ast.Sub(), ast.Constant(1))
            yield f"[{ast.unparse(node)}] ends early", ast.Slice(node.lower, less, node.step)
        if node.lower is not None:
            more = ast.BinOp(node.lower, ast.Add(), ast.Constant(1))
            yield f"[{ast.unparse(node)}] starts late", ast.Slice(more, node.upper, node.step)
    elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        new_value = ast.Constant(not node.value.value)
        yield f"{node.arg}: {node.value.value} -> {not node.value.value}", ast.keyword(node.arg, new_value)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in names.get(node.id, ()):
            yield f"{node.id} -> {other}", ast.Name(other, ast.Load())
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("call", "call.wide"):
        for other in names.get(f"call.{node.attr}", ()):
            yield f"{node.attr} -> {other}", ast.Attribute(node.value, other, ast.Load())
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "flatten":
            yield from (
                (f"flatten: 1 -> {new}", ast.Call(node.func, [ast.Constant(new)], [])) for new in (0, 2) if node.args
            )
        elif node.func.attr == "half":
            yield f"{ast.unparse(node)}: not rounded", node.func.value
        elif node.func.attr in SUMS:
            yield f"half({ast.unparse(node)})", _call("rough", node)


def _call(name: str, argument: ast.AST) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])  # type: ignore[list-item]


class Place(ast.NodeTransformer):
    """Puts a node in the place of the n-th that is visited."""

    def __init__(self, place: int, new: ast.AST) -> None:
        self.place, self.new, self.seen = place, new, -1

    def visit(self, node: ast.AST) -> ast.AST:
        self.seen += 1
        return self.new if self.seen == self.place else self.generic_visit(node)


def order(node: ast.AST) -> Iterator[ast.AST]:
    """As Place visits."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from order(child)


def surroundings(node: ast.AST, whole: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each node and the smallest call, comparison, index or sum that it is in."""
    for child in ast.iter_child_nodes(node):
        around = (
            node if whole is None or isinstance(node, ast.Call | ast.Compare | ast.Subscript | ast.BinOp) else whole
        )
        yield child, around
        yield from surroundings(child, around)


def alike(kinds: Iterable[tuple[str, object]]) -> dict[str, list[str]]:
    """Name -> those of the same kind, which may stand in its place."""
    kinds = list(kinds)
    return {name: [other for other, same in kinds if same == kind and other != name] for name, kind in kinds}


def of_call(operator: str) -> dict[str, list[str]]:
    """The arguments of an operator that may stand in each other's place."""
    found = alike((p.name, p.annotation) for p in inspect.signature(getattr(ops, operator)).parameters.values())
    return {f"call.{name}": others for name, others in found.items()}


def mutants(tree: ast.Module, wanted: set[str], arguments: dict[str, list[str]]) -> Iterator[Mutant]:
    """Every change of the bodies of the wanted functions."""
    for index, function in enumerate(tree.body):
        bodies = function.body if isinstance(function, ast.ClassDef) else [function]
        for number, body in enumerate(bodies):
            if not isinstance(body, ast.FunctionDef) or body.name not in wanted:
                continue
            own = ((a.arg, ast.unparse(a.annotation)) for a in body.args.args if a.annotation is not None)
            names = alike(own) | arguments
            for at, statement in enumerate(body.body):
                if isinstance(statement, ast.Expr):
                    continue  # a docstring
                text = ast.unparse(statement)
                flattened = {
                    id(argument)
                    for node in ast.walk(statement)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "flatten"
                    for argument in node.args
                }
                around = dict(surroundings(statement))
                for place, node in enumerate(order(statement)):
                    for change, new in changes(node, names) if id(node) not in flattened else ():
                        if change.startswith("half(") and f"rounded({change[5:]}" in text:
                            continue  # rounded twice is rounded once
                        if isinstance(node, ast.Constant):
                            change += f" in {ast.unparse(around[node])}"
                        changed = copy.deepcopy(tree)
                        inner = changed.body[index]
                        held = inner.body[number] if isinstance(inner, ast.ClassDef) else inner
                        assert isinstance(held, ast.FunctionDef)
                        held.body[at] = Place(place, copy.deepcopy(new)).visit(held.body[at])
                        yield Mutant(body.name, change, ast.fix_missing_locations(changed))


def reached(trees: list[ast.Module], start: str) -> set[str]:
    """The functions that one calls, by name, itself among them."""
    calls = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                calls[node.name] = words | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    found, left = set(), [start]
    while left:
        name = left.pop()
        if name in calls and name not in found:
            found.add(name)
            left += calls[name]
    return found


def build(own: ast.Module, shared: ast.Module, name: str) -> Callable[..., dict[str, torch.Tensor]]:
    """The function of a family's module on top of the shared parts, both perhaps changed."""
    module = sys.modules["mutant"] = ModuleType("mutant")  # where dataclasses look for themselves
    space = vars(module) | {"rough": rough}
    exec(compile(shared, "parts", "exec"), space)
    left = [n for n in own.body if not (isinstance(n, ast.ImportFrom) and n.module == "parts")]
    exec(compile(ast.Module(left, []), "family", "exec"), space)
    meaning, call = space[name], space["CallArguments"]
    return lambda **arguments: meaning(call(arguments, torch.float32))


@dataclass
class Bench:
    """The samples of one operator, and what they should give."""

    operator: str

    def __post_init__(self) -> None:
        entry = OPS[self.operator]
        self.calls = []
        for sizes in entry.samples:
            arguments = samples.make(self.operator, sizes).arguments
            self.calls.append((arguments, judge.ByReference(entry, arguments)))
        self.calls.sort(key=lambda call: sum(v.numel() for v in call[0].values() if isinstance(v, torch.Tensor)))

    def tells(self, wrong: Callable[..., dict[str, torch.Tensor]], *, beyond: bool = True) -> bool | None:
        """Some sample tells it apart; None where it cannot be run at all."""
        ran = failed = False
        for arguments, expected in self.calls:
            if not beyond and not domain.published(self.operator, arguments):
                continue
            before = {name: arguments[name] for name in OPS[self.operator].writes}
            try:
                got = wrong(**arguments)
                fits = {name: got[name].reshape(old.shape).to(old.dtype) for name, old in before.items()}
                told = expected.told(before, fits)
            except (
                RuntimeError,
                ValueError,
                TypeError,
                IndexError,
                KeyError,
                AttributeError,
                ZeroDivisionError,
                MemoryError,
                NameError,
            ):
                failed = True
                continue
            ran = True
            if told:
                return True
        return failed if ran else None


@dataclass
class Tally:
    """Of one operator: how many mutants could be run, and which were not told apart; `known` are not counted."""

    count: int = 0
    left: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)

    def add(self, words: str, tells: bool | None, reason: str) -> None:
        """`tells` as Bench says it."""
        if tells is None:
            return
        if not tells and reason:
            self.known.append(f"{words}: {reason}")
            return
        self.count += 1
        self.left += [] if tells else [words]


def survivors(operator: str) -> Tally:
    own = next(module for module in FAMILIES if operator in vars(module))
    trees = [ast.parse(inspect.getsource(module)) for module in (own, parts)]
    names = reached(trees, vars(own)[operator].__name__)  # two operators may have one meaning
    bench, tally = Bench(operator), Tally()
    beyond = operator == "esimd_gdn_conv_fused_seq_spec"  # published for many heads alone, so for small pools here
    for fault, wrong in borders.wrong(operator):
        tally.add(fault, bench.tells(wrong, beyond=beyond), borders.reason(operator, fault))
    for which, tree in enumerate(trees):
        for mutant in mutants(
            tree, names - {"terms", "absolute_values", "rounded", "kept", "fp8", "_codes"}, of_call(operator)
        ):
            function = build(mutant.tree if which == 0 else trees[0], mutant.tree if which == 1 else trees[1], operator)
            words = f"{mutant.function}: {mutant.change}"
            reason = next((KNOWN[k] for k in KNOWN if words.endswith(k) or words.partition(" in ")[0].endswith(k)), "")
            tally.add(words, bench.tells(function), reason)
    return tally


def main(operators: list[str]) -> int:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # some ask for absurd sizes
    made = lived = known = 0
    for operator in operators or list(OPS):
        tally = survivors(operator)
        made, lived, known = made + tally.count, lived + len(tally.left), known + len(tally.known)
        print(f"{operator}: {tally.count - len(tally.left)} of {tally.count} told apart", flush=True)
        for words in tally.left:
            print(f"    {words}", flush=True)
        for words in tally.known:
            print(f"    cannot be told: {words}", flush=True)
    print(f"{made - lived} of {made} told apart, {(made - lived) / made:.1%}; {known} more cannot be, for a reason")
    return int((made - lived) / made < LEAST)


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main(sys.argv[1:]))
