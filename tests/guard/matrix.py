"""The same operators with true and with lying schemas, and programs to be compiled with either."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

BACKEND = "aot_eager"  # what a schema changes happens before Inductor; test_programs.py goes there
LIBRARIES: list[torch.library.Library] = []


def _write(x, out):
    out.copy_(x * 2 + 1)


def _lists(x, outs):
    for index, out in enumerate(outs):
        out.copy_(x * (index + 2))


def _optional(x, out=None):
    if out is not None:
        out.copy_(x - 3)


def _norm(x, residual):
    residual.add_(x)
    return residual / 2


def _attend(x, out):
    out.copy_(x * 3)
    return x.sum().reshape(1)


# name: (true schema, implementation, fake, what is written)
TRUE = {
    "write": ("(Tensor x, Tensor(a!) out) -> ()", _write, lambda *_: None, "out"),
    "lists": ("(Tensor x, Tensor(a!)[] outs) -> ()", _lists, lambda *_: None, "outs"),
    "optional": ("(Tensor x, Tensor(a!)? out=None) -> ()", _optional, lambda *_, **__: None, "out"),
    "norm": ("(Tensor x, Tensor(a!) residual) -> Tensor", _norm, lambda x, _: torch.empty_like(x), "residual"),
    "attend": ("(Tensor x, Tensor(a!) out) -> Tensor", _attend, lambda x, _: x.new_empty(1), "out"),
}
# The same, handing the buffer back; the wrappers of the true ones do so in Python.
HANDED = {
    "write": ("(Tensor x, Tensor out) -> Tensor", lambda x, out: (_write(x, out), out)[1], lambda _, out: torch.empty_like(out), "out"),
    "attend": ("(Tensor x, Tensor out) -> (Tensor, Tensor)", lambda x, out: (lse := _attend(x, out), (out, lse))[1],
               lambda x, out: (torch.empty_like(out), x.new_empty(1)), "out, fresh"),
}  # fmt: skip
WRITES = {name: entry[3] for name, entry in TRUE.items()}


class Operators:
    """One registration of the operators: "true", "lying" (no annotation), or "handing" (and the buffer returned)."""

    def __init__(self, kind: str) -> None:
        self.kind, self.namespace = kind, f"matrix_{kind}"
        library = torch.library.Library(self.namespace, "FRAGMENT")
        LIBRARIES.append(library)
        self.returns = {"norm": "fresh", "attend": "fresh"}
        for name, entry in TRUE.items():
            if kind == "handing" and name in HANDED:
                entry = HANDED[name]
                self.returns[name] = entry[3]
            schema, implementation, fake, _ = entry
            library.define(name + (schema if kind == "true" else schema.replace("(a!)", "")))
            library.impl(name, implementation, "CPU")
            torch.library.register_fake(f"{self.namespace}::{name}", fake, lib=library)
        self.raw = getattr(torch.ops, self.namespace)

    def write(self, x: Any, out: Any) -> Any:
        result = self.raw.write(x, out)
        return result if self.kind == "handing" else out

    def attend(self, x: Any, out: Any) -> Any:
        result = self.raw.attend(x, out)
        return result if self.kind == "handing" else (out, result)


PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Registers `function(ops, x)`: what is compiled."""
    PROGRAMS[function.__name__] = function
    return function


@program
def buffer_read(ops, x):
    out = torch.zeros_like(x)
    ops.write(x, out)
    return out + 1


@program
def result_written_later(ops, x):
    out = torch.zeros_like(x)
    ops.write(x, out).mul_(10)
    return out * 2


@program
def buffer_written_later(ops, x):
    out = torch.zeros_like(x)
    result = ops.write(x, out)
    out.add_(5)
    return result * 2


@program
def result_is_returned(ops, x):
    out = torch.zeros_like(x)
    return ops.write(x, out), out


@program
def result_viewed_and_written(ops, x):
    out = torch.zeros_like(x)
    ops.write(x, out).view(-1)[1:].neg_()
    return out


@program
def input_is_the_buffer(ops, x):
    ops.write(x + 1, x)
    return x * 2


@program
def input_read_and_written(ops, x):
    ops.write(x, x)
    return x


@program
def input_view_is_the_buffer(ops, x):
    ops.write(x[0] + 1, x[1])
    return x.sum()


@program
def slices_that_overlap(ops, x):
    base = torch.zeros(4, *x.shape[1:])
    ops.write(x, base[0:2])
    ops.write(x, base[1:3])
    return base, base[1:4] + 1


@program
def transposed(ops, x):
    base = torch.zeros(x.shape[1], x.shape[0])
    ops.write(x, base.t())
    return base


@program
def read_and_written_overlap(ops, x):
    base = x + 0
    ops.write(base[0], base[1])
    ops.write(base[1], base[0])
    return base


@program
def a_list(ops, x):
    outs = [torch.zeros_like(x) for _ in range(3)]
    ops.raw.lists(x, outs)
    return outs[0] + outs[1] * outs[2]


@program
def a_list_of_views(ops, x):
    base = torch.zeros(3, *x.shape)
    ops.raw.lists(x, [base[0], base[2]])
    return base


@program
def the_same_twice_in_a_list(ops, x):
    out = torch.zeros_like(x)
    ops.raw.lists(x, [out, out])
    return out


@program
def an_empty_list(ops, x):
    ops.raw.lists(x, [])
    return x + 1


@program
def optional_given(ops, x):
    out = torch.zeros_like(x)
    ops.raw.optional(x, out)
    return out + 1


@program
def optional_by_keyword(ops, x):
    out = torch.zeros_like(x)
    ops.raw.optional(x=x, out=out)
    return out + 1


@program
def optional_left_out(ops, x):
    ops.raw.optional(x)
    return x + 1


@program
def new_result_and_write(ops, x):
    residual = x * 4
    return ops.raw.norm(x, residual) + 1, residual


@program
def new_result_alone(ops, x):
    return ops.raw.norm(x, x * 4)


@program
def buffer_and_new_result(ops, x):
    out = torch.zeros_like(x)
    result, lse = ops.attend(x, out)
    result.mul_(2)
    return out + 1, lse * 2


@program
def nothing_is_read(ops, x):
    ops.write(x, torch.zeros_like(x))
    return x * 2


@program
def in_a_loop(ops, x):
    out = torch.zeros_like(x)
    for _ in range(3):
        ops.write(x, out)
        x = out + x
    return x


@program
def with_a_graph_break(ops, x):
    out = torch.zeros_like(x)
    ops.write(x, out)
    torch._dynamo.graph_break()
    return out + 1


@program
def checkpointed(ops, x):
    return torch.utils.checkpoint.checkpoint(functools.partial(buffer_read, ops), x, use_reentrant=False)


@program
def custom_gradient(ops, x):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            out = torch.zeros_like(x)
            ops.write(x, out)
            return out

        @staticmethod
        def backward(context, gradient):
            out = torch.zeros_like(gradient)
            ops.write(gradient, out)
            return out

    return Doubled.apply(x) + x


@program
def vmapped(ops, x):
    return torch.vmap(functools.partial(buffer_read, ops))(x)


@program
def differentiated(ops, x):
    return torch.func.grad(lambda y: (buffer_read(ops, y) * y).sum())(x)


@program
def conditional(ops, x):
    out = torch.zeros_like(x)

    def yes(x, out):
        ops.write(x, out)
        return out * 2

    return torch.cond(x.sum() > -1e9, yes, lambda x, out: out + x, (x, out)), out + 0


@program
def a_buffer_inside_a_conditional(ops, x):
    return torch.cond(x.sum() > -1e9, functools.partial(buffer_read, ops), lambda x: x + 1, (x,))


@program
def a_while_loop(ops, x):
    from torch._higher_order_ops.while_loop import while_loop

    out = torch.zeros_like(x)

    def body(i, v):
        ops.write(v, out)
        return i + 1, v + 1

    return while_loop(lambda i, v: i < 3, body, (torch.tensor(0), x.clone()))[1], out + 0


def nested_region(ops, x):
    @torch.compiler.nested_compile_region
    def region(x, out):
        ops.write(x, out)
        return out * 2

    first, second = torch.zeros_like(x), torch.zeros_like(x)
    return region(x, first) + region(x * 2, second), first + 0


def nested_region_with_its_own_buffer(ops, x):
    @torch.compiler.nested_compile_region
    def region(x):
        return buffer_read(ops, x)

    return region(x) + region(x * 2)


if hasattr(torch.compiler, "nested_compile_region"):
    program(nested_region)
    program(nested_region_with_its_own_buffer)


class Scaled(torch.Tensor):
    """A wrapper subclass with a rule of its own for `write`."""

    @staticmethod
    def __new__(cls, raw):
        return torch.Tensor._make_wrapper_subclass(cls, raw.shape, dtype=raw.dtype)

    def __init__(self, raw):
        self.raw = raw

    def __tensor_flatten__(self):
        return ["raw"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Scaled(inner["raw"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        bare = pytree.tree_map(lambda v: v.raw if isinstance(v, Scaled) else v, args)
        if func.name().endswith("::write") and func.namespace.startswith("matrix_"):
            result = func(bare[0] * 100, bare[1])
            return args[1] if result is not None else None
        return pytree.tree_map(lambda v: Scaled(v) if isinstance(v, torch.Tensor) else v, func(*bare, **(kwargs or {})))


@program
def subclass_is_read(ops, x):
    out = torch.zeros_like(x)
    ops.write(Scaled(x), out)
    return out * 2


@program
def subclass_is_written(ops, x):
    out = Scaled(torch.zeros_like(x))
    ops.write(x, out)
    return out.raw * 2


def compiled(ops, function, x, **options):
    return torch.compile(functools.partial(function, ops), backend=BACKEND, **options)(x)


def as_it_is(ops, function, x):
    return compiled(ops, function, x)


def without_gradient(ops, function, x):
    with torch.no_grad():
        return compiled(ops, function, x)


def in_inference_mode(ops, function, x):
    with torch.inference_mode():
        return compiled(ops, function, x)


def with_autocast(ops, function, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return compiled(ops, function, x)


def with_dynamic_shapes(ops, function, x):
    compiled_program = torch.compile(functools.partial(function, ops), backend=BACKEND, dynamic=True)
    compiled_program(torch.ones(5, 7))
    return compiled_program(x)


def with_gradient(ops, function, x):
    leaf = x.detach().requires_grad_()
    results = compiled(ops, lambda ops, x: function(ops, x * 1), leaf)
    scores = [part.sum() for part in pytree.tree_leaves(results) if part.requires_grad]
    if scores:
        torch.stack(scores).sum().backward()
    return results, leaf.grad


def exported(ops, function, x):
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(ops, x)

    program = torch.export.export(Module(), (x,))
    return program.run_decompositions({}).module()(x)


def with_dead_code_taken_out(ops, function, x):
    """A backend that cleans the graph that it gets, as splitting backends do."""

    def clean(graph, _inputs):
        graph.graph.eliminate_dead_code()
        graph.recompile()
        return graph.forward

    return torch.compile(functools.partial(function, ops), backend=clean)(x)


def distributed(ops, function, x):
    import torch.distributed as dist

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(x.shape[-1], x.shape[-1])
            torch.nn.init.eye_(self.layer.weight)

        def forward(self, x):
            return function(ops, self.layer(x).detach())

    if not dist.is_initialized():
        store = dist.FileStore(str(Path(tempfile.mkdtemp()) / "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    return torch.compile(torch.nn.parallel.DistributedDataParallel(Module()), backend=BACKEND)(x)


WAYS = {f.__name__: f for f in (as_it_is, without_gradient, in_inference_mode, with_autocast, with_dynamic_shapes,
                                with_gradient, exported, with_dead_code_taken_out, distributed)}  # fmt: skip
# Every program as it is; every other way with programs that differ in what matters there.
CELLS = [(name, "as_it_is") for name in PROGRAMS] + [
    (name, way)
    for way in WAYS
    if way != "as_it_is"
    for name in ("buffer_read", "result_written_later", "a_list_of_views", "new_result_and_write", "conditional", "nothing_is_read")
]  # fmt: skip


def outcome(ops: Operators, name: str, way: str) -> tuple[str, str]:
    """What becomes of a program in a way to run it: "right", "wrong" or "refused", with the values or the reason."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(2, 3)
    eager_x, compiled_x = x.clone(), x.clone()
    try:  # some are compiled or refused by themselves
        expected = PROGRAMS[name](ops, eager_x)
        found = WAYS[way](ops, PROGRAMS[name], compiled_x)
    except Exception as error:  # noqa: BLE001  whatever torch refuses with
        return "refused", f"{type(error).__name__}: {error}"
    gradient = None
    if way == "with_gradient":
        found, gradient = found
    pairs = zip(pytree.tree_leaves((expected, eager_x)), pytree.tree_leaves((found, compiled_x)), strict=True)
    same = all(a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-6) for a, b in pairs)
    values = pytree.tree_map(lambda t: t if t is None else t.tolist(), (found, gradient, compiled_x))
    return ("right" if same else "wrong"), repr(values)
