"""Programs to be compiled with any registration of the operators. Each takes the operators and a tensor of two rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

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
def a_diagonal(ops, x):
    base = torch.zeros(3, 3)
    ops.write(x[0], base.diagonal())
    return base * 2


@program
def the_imaginary_part(ops, x):
    both = torch.complex(x, x * 2)
    ops.write(x, both.imag)
    return torch.view_as_real(both) + 0


@program
def bits_of_integers(ops, x):
    base = torch.zeros(2, 3, dtype=torch.int32)
    ops.write(x, base.view(torch.float32))
    return base


@program
def a_size_from_values(ops, x):
    rows, out = int((x > -100).sum().item()) // 6, torch.zeros(4, 3)
    ops.write(x[: rows + 1], out[:2])
    return out


@program
def a_buffer_of_a_module(ops, x):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(2, 3))

        def forward(self, x):
            ops.write(x, self.kept)
            self.kept.mul_(2)
            return self.kept + 1

    module = Module()
    return module(x), module(x + 1), module.kept


@program
def buffers_that_take_turns(ops, x):
    one, other = torch.zeros_like(x), torch.zeros_like(x)
    for _ in range(3):
        ops.write(one + x, other)
        one, other = other, one
    return torch.add(one, 1, out=other), one


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
def gradient_of_the_buffer(ops, x):
    """What the buffer held had a gradient, which a write ends."""
    out = x * 5
    ops.write(x, out)
    return out * 2 + x


@program
def gradient_of_the_operator(ops, x):
    out = torch.zeros_like(x)
    return ops.graded(x, out) * 3 + x


@program
def gradient_read_from_the_buffer(ops, x):
    out = torch.zeros_like(x)
    ops.graded(x, out)
    return out * 3 + x


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
