"""Ways to run the programs, and what becomes of each program in each way."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from matrix_operators import Operators
from matrix_programs import PROGRAMS
from torch.utils import _pytree as pytree

BACKEND = "aot_eager"  # what a schema changes happens before Inductor, which has a way of its own


def compiled(ops, function, x, **options):
    return torch.compile(functools.partial(function, ops), backend=BACKEND, **options)(x)


def as_it_is(ops, function, x):
    return compiled(ops, function, x)


def by_inductor(ops, function, x):
    return torch.compile(functools.partial(function, ops))(x)


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
    compiled_program(torch.ones(x.shape[0] + 3, x.shape[1] + 4))
    return compiled_program(x)


def with_gradient(ops, function, x):
    leaf = x.detach().requires_grad_()
    results = compiled(ops, lambda ops, x: function(ops, x * 1), leaf)
    return results, gradient_of(results, leaf)


def gradient_of(results, leaf):
    scores = [part.sum() for part in pytree.tree_leaves(results) if part.requires_grad]
    if scores:
        torch.stack(scores).sum().backward()
    return leaf.grad


def exported(ops, function, x):
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(ops, x)

    program = torch.export.export(Module(), (x,))
    return program.run_decompositions({}).module()(x)


def exported_then_with_gradient(ops, function, x):
    """The module calls twins eagerly, and of an input that requires grad."""
    leaf = x.detach().requires_grad_()

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(ops, x * 1)

    results = torch.export.export(Module(), (x,)).run_decompositions({}).module()(leaf)
    return results, gradient_of(results, leaf)


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


WAYS = {f.__name__: f for f in (as_it_is, by_inductor, without_gradient, in_inference_mode, with_autocast, with_dynamic_shapes,
                                with_gradient, exported, exported_then_with_gradient, with_dead_code_taken_out, distributed)}  # fmt: skip
GRADIENTS = ("gradient_of_the_buffer", "gradient_of_the_operator", "gradient_read_from_the_buffer", "input_is_the_buffer",
             "checkpointed", "custom_gradient", "buffer_and_new_result", "new_result_alone")  # fmt: skip
# Every program as it is; every other way with programs that differ in what matters there.
CELLS = [(name, "as_it_is") for name in PROGRAMS] + [
    (name, way)
    for way in WAYS
    if way != "as_it_is"
    for name in ("buffer_read", "result_written_later", "a_list_of_views", "new_result_and_write", "conditional", "nothing_is_read")
] + [(name, way) for way in ("with_gradient", "exported_then_with_gradient") for name in GRADIENTS]  # fmt: skip


def outcome(ops: Operators, name: str, way: str) -> tuple[str, str]:
    return outcome_of(ops, PROGRAMS[name], way, 2, 3)


def outcome_of(ops: Operators, program: Callable[..., Any], way: str, *shape: int) -> tuple[str, str]:
    """What becomes of a program in a way to run it: "right", "wrong" or "refused", with the values or the reason."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(*shape)
    eager_x, compiled_x = x.clone(), x.clone()
    try:  # some are compiled or refused by themselves
        expected = program(ops, eager_x)
        found = WAYS[way](ops, program, compiled_x)
    except Exception as error:  # noqa: BLE001  whatever torch refuses with
        return "refused", f"{type(error).__name__}: {error}"
    gradient = None
    if way.endswith("with_gradient"):
        found, gradient = found
    pairs = zip(pytree.tree_leaves((expected, eager_x)), pytree.tree_leaves((found, compiled_x)), strict=True)
    same = all(a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-6) for a, b in pairs)
    values = pytree.tree_map(lambda t: t if t is None else (t.tolist(), t.requires_grad), (found, gradient, compiled_x))
    return ("right" if same else "wrong"), repr(values)
