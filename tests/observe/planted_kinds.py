"""More of what operators are like: liars and honest ones in the ways of out=, functorch, arenas, threads, large caches."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import torch
from planted import HONEST, LIARS, Case, custom, nothing, x, zeros
from torch import Tensor
from torch.utils.checkpoint import checkpoint

kept: dict[Any, Any] = {}
ROWS = (4096, 3072)  # above the 16 MiB of which every byte is known


def poke(tensor: Tensor, place: int = 0) -> None:
    """A raw store, as a kernel's: torch counts no write."""
    ctypes.memset(tensor.data_ptr() + place, 7, 1)


def raises(op: Any) -> None:
    try:
        op(x())
    except RuntimeError:
        return


def in_inference(op: Any) -> None:
    with torch.inference_mode():
        op(x())


def started_and_awaited(op: Any) -> None:
    held = x()
    torch.ops.observed_liars.starts(held)
    op()


def dangling(op: Any) -> None:
    """Somebody else has the memory now of which the operator kept the address, as an allocator would give it."""
    memory = np.zeros(64, np.float32)
    op(torch.from_numpy(memory))
    held = torch.from_numpy(memory)
    torch.ops.observed_honest.frees_and_takes(held)
    op(x())


def twelve_then(second: Any) -> Any:
    return lambda op: [op(x(2, 2)) for _ in range(12)] + [op(second(x(2, 2)))]


def halves(op: Any) -> None:
    """Left and right of each row: of blocks both, of bytes none."""
    whole = torch.zeros(ROWS)
    op(whole[:, : ROWS[1] // 2], whole[:, ROWS[1] // 2 :])


def neighbours(op: Any) -> None:
    whole = torch.zeros(ROWS).view(-1)
    op(whole[100:200], whole[200:300])


def backward(op: Any) -> None:
    torch.ops.observed_liars.graded(x().requires_grad_()).sum().backward()


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, t: Tensor) -> Tensor:
        return t * 2

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        torch.ops.observed_liars.in_backward(gradient)
        return gradient


LIES = {
    "variant.out": Case(lambda op: op(x(), out=zeros()), ("SP101", "SP103"), "returns 'out'"),
    "one_of_a_list": Case(lambda op: op([x(), x(), x()]), ("SP101",), "up to 1 of 24 bytes"),
    "optional_list": Case(lambda op: op([x(), None, x()]), ("SP101",), "writes 'xs'"),
    "in_a_dict": Case(lambda op: op({"a": x(), "b": x()}), ("SP101",), "writes 'd'"),
    "view_of_views": Case(lambda op: op(x(20)[3:][::2][1:4]), ("OB101",), "in the storage of x"),
    "inference": Case(in_inference, ("SP101",), "writes 'x'"),
    "raises": Case(raises, ("SP101",), "'x' in 1 of 1 watched calls"),
    "awaits": Case(started_and_awaited, ("OB101",), "changed 'x', given to observed_liars::starts"),
    "dangling": Case(dangling, ("OB101",), "changed 'x', given to observed_honest::frees_and_takes"),
    "half_only": Case(twelve_then(Tensor.half), ("SP101",), "'x' in 1 of 11 watched calls"),
    "transposed_only": Case(twelve_then(Tensor.t), ("SP101",), "'x' in 1 of 11 watched calls"),
    "other_half": Case(halves, ("SP102",), "writes 'x' undeclared"),
    "neighbour": Case(neighbours, ("SP102",), "writes 'x' undeclared"),
    "swapped": Case(lambda op: op(x(), x()), ("SP103",), "returns"),
    "imaginary": Case(lambda op: op(torch.ones(3, dtype=torch.complex64)), ("SP101",), "up to 3 of 24 bytes"),
    "conjugated": Case(lambda op: op(torch.ones(3, dtype=torch.complex64)), ("SP103",), "returns memory of 'x'"),
    "transposes": Case(lambda op: op(x(2, 3)), ("SP101",), "writes 'x'"),
    "windows": Case(lambda op: op(x(10).unfold(0, 4, 1)), ("SP101",), "up to 1 of"),
    "memoized": Case(lambda op: [op(x()).sum(), op(x()).sum()], ("SP104",), "that it keeps"),
    "graded_backward": Case(backward, ("SP101",), "writes 'saved'"),
    "in_backward": Case(lambda op: (Halved.apply(x().requires_grad_()) * 3).sum().backward(), ("SP101",), "writes 'x'"),
    "vmapped": Case(lambda op: torch.vmap(op)(x(2, 3)), ("SP101",), "writes 'x'"),
    "by_another": Case(lambda op: op(x()), ("SP101",), "writes 'x'"),
}  # fmt: skip


def beside_a_thread(read: Any) -> Any:
    """A thread of numpy's, of whose writes torch counts none, fills what the operator is not given."""

    def run(op: Any) -> None:
        ring, done = np.zeros(4096, np.float32), threading.Event()
        held = torch.from_numpy(ring)
        given = read(op, held)

        def fill() -> None:
            turn = 0
            while not done.wait(0.0005):
                turn += 1
                ring[2048:] = turn

        thread = threading.Thread(target=fill)
        thread.start()
        for _ in range(3):
            op(given)
        done.set()
        thread.join()

    return run


def rows_of_threads(op: Any) -> None:
    whole, done = torch.zeros(ROWS).view(-1), threading.Event()

    def fill() -> None:
        while not done.wait(0.0005):
            whole[200:300].add_(1)

    thread = threading.Thread(target=fill)
    thread.start()
    for _ in range(2):
        op(whole[100:200])
    done.set()
    thread.join()


def registered_again(_: Any) -> None:
    def write(out: Tensor, x: Tensor) -> None:
        out.copy_(x)

    for schema, kernel, given in (
        ("again(Tensor x) -> Tensor", torch.neg, (x(),)),
        ("again(Tensor(a!) out, Tensor x) -> ()", write, (zeros(), x())),
    ):
        library = torch.library.Library(HONEST, "FRAGMENT")
        library.define(schema)
        library.impl("again", kernel, "CPU")
        torch.ops.observed_honest.again(*given)
        library._destroy()


def traced(op: Any) -> None:
    graph = torch.jit.trace(lambda t: op(t * 2) + 1, x(), check_trace=False).graph
    assert [node.kind() for node in graph.nodes() if "prim" not in node.kind()] == [
        "aten::mul",
        "observed_honest::traced",
        "aten::add",
    ]


def on_another_device(op: Any) -> None:
    whole = torch.zeros(ROWS)
    with torch.device("meta"):
        op(whole[:, ::2], whole[:, 1::2])


def weight(op: Any) -> None:
    held = x().requires_grad_()
    for _ in range(2):
        op(held).sum().backward()
        held.grad.mul_(0.5)
    checkpoint(op, held, use_reentrant=False).sum().backward()


ANSWERS = {
    "variant": Case(lambda op: op(x())),
    "variant.out": Case(lambda op: op(x(), out=zeros()), ("SP105",)),
    "lists": Case(lambda op: op([x(), x(3)], [(same := zeros()), same[:3]])),
    "at_times_nothing": Case(lambda op: [op(x(), True), op(x(), False)]),
    "interleaved": Case(lambda op: op((whole := x(24))[::2], whole[1::2])),
    "real": Case(lambda op: op((whole := torch.ones(4, dtype=torch.complex64)).imag, whole.real)),
    "slab": Case(lambda op: [op(x()) for _ in range(5)]),
    "thirds_of_rows": Case(lambda op: op(torch.ones(4096, 512))),
    "halves": Case(halves),
    "neighbours": Case(neighbours),
    "split": Case(lambda op: op(x()), ("SP105",)),
    "in_place": Case(lambda op: op(op(x())), ("SP105",)),
    "table_by_number": Case(lambda op: [op(x(), n % 2) for n in range(6)]),
    "beside_numpy": Case(beside_a_thread(lambda op, ring: ring[:64])),
    "before_numpy": Case(beside_a_thread(lambda op, ring: (op(ring), x())[1]), (), "by whom is not known"),
    "row_of_threads": Case(rows_of_threads),
    "again": Case(registered_again),
    "traced": Case(lambda op: [traced(op), op(x())]),
    "on_another_device": Case(on_another_device),
    "graded": Case(weight),
    "graded_backward": Case(lambda op: op(x(), x())),
    "vmapped": Case(lambda op: torch.vmap(op)(x(2, 3))),
    "by_another": Case(lambda op: op(x())),
}  # fmt: skip


def define() -> list[torch.library.Library]:
    """The operators. They live as long as what is returned."""
    liars, honest = torch.library.Library(LIARS, "FRAGMENT"), torch.library.Library(HONEST, "FRAGMENT")

    def out(x: Tensor, *, out: Tensor) -> Tensor:
        return out.copy_(x * 2)

    def each(xs: list[Tensor], outs: list[Tensor]) -> None:
        for one, other in zip(xs, outs, strict=True):
            other.copy_(one)

    def slab(x: Tensor) -> Tensor:
        """Parts of one allocation, none of them given twice."""
        whole, start = kept.setdefault("slab", torch.zeros(100)), kept.get("start", 0)
        kept["start"] = start + x.numel()
        return whole[start : kept["start"]].copy_(x)

    def rest(x: Tensor) -> Tensor:
        time.sleep(0.002)
        return x * 2

    def write_and_fail(x: Tensor) -> None:
        poke(x)
        raise RuntimeError("after the write")

    def hold_address(x: Tensor) -> None:
        if "address" in kept:
            ctypes.memset(kept["address"], 9, 2)
        kept["address"] = x.data_ptr()

    for library, schemas in (
        (liars, {
            "variant.out(Tensor x, *, Tensor out) -> Tensor": out,
            "one_of_a_list(Tensor[] xs) -> ()": nothing(lambda xs: poke(xs[1], 3)),
            "optional_list(Tensor?[] xs) -> ()": nothing(lambda xs: poke(xs[2])),
            "in_a_dict(Dict(str, Tensor) d) -> ()": nothing(lambda d: poke(d["a"])),
            "view_of_views(Tensor x) -> ()": nothing(lambda x: poke(x, -4)),
            "inference(Tensor x) -> ()": nothing(lambda x: x.mul_(3)),
            "raises(Tensor x) -> ()": write_and_fail,
            "starts(Tensor x) -> ()": nothing(lambda x: kept.update(late=x)),
            "awaits() -> ()": lambda: poke(kept.pop("late")),
            "dangling(Tensor x) -> ()": hold_address,
            "half_only(Tensor x) -> ()": nothing(lambda x: x.dtype is torch.half and poke(x)),
            "transposed_only(Tensor x) -> ()": nothing(lambda x: x.is_contiguous() or poke(x)),
            "other_half(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(1), poke(x[9], 5))[1],
            "neighbour(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(1), poke(x, 5))[1],
            "swapped(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))": lambda x, y: (y.add_(1), x.add_(1)),
            "imaginary(Tensor x) -> ()": nothing(lambda x: poke(x.imag, 2) or poke(x.imag, 11) or poke(x.imag, 18)),
            "conjugated(Tensor x) -> Tensor": lambda x: x.conj(),
            "transposes(Tensor x) -> ()": nothing(lambda x: x.t_()),
            "windows(Tensor x) -> ()": nothing(lambda x: poke(x, 8)),
            "memoized(Tensor x) -> Tensor": lambda x: kept.setdefault(x.shape, x * 2),
            "in_backward(Tensor x) -> ()": nothing(lambda x: x.mul_(2)),
            "by_another(Tensor x) -> ()": nothing(lambda x: torch.ops.observed_honest.by_another(x)),
        }),
        (honest, {
            "variant(Tensor x) -> Tensor": lambda x: x * 2,
            "variant.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)": out,
            "lists(Tensor[] xs, Tensor(a!)[] outs) -> ()": each,
            "at_times_nothing(Tensor x, bool some) -> Tensor?": lambda x, some: x + 1 if some else None,
            "interleaved(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(x), None)[1],
            "real(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(x).add_(1), None)[1],
            "slab(Tensor x) -> Tensor": slab,
            "thirds_of_rows(Tensor x) -> (Tensor, Tensor, Tensor)": lambda x: x.repeat(1, 3).split(512, 1),
            "halves(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(1), None)[1],
            "neighbours(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(1), None)[1],
            "split(Tensor(a) x) -> Tensor(a)[]": lambda x: [x[:4], x[2:]],
            "in_place(Tensor(a!) x) -> Tensor(a!)": lambda x: x.add_(1),
            "table_by_number(Tensor x, int n) -> Tensor": lambda x, n: x + kept.setdefault(n, torch.ones(6)),
            "beside_numpy(Tensor x) -> Tensor": rest,
            "before_numpy(Tensor x) -> Tensor": rest,
            "row_of_threads(Tensor x) -> Tensor": rest,
            "traced(Tensor x) -> Tensor": lambda x: x * 2,
            "on_another_device(Tensor x, Tensor(a!) out) -> ()": lambda x, out: (out.add_(1), None)[1],
            "by_another(Tensor(a!) x) -> ()": nothing(lambda x: x.add_(1)),
        }),
    ):  # fmt: skip
        for schema, function in schemas.items():
            library.define(schema)
            library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    for space in (LIARS, HONEST):
        _differentiable(space, lies=space == LIARS)
    return [liars, honest]


def _differentiable(space: str, *, lies: bool) -> None:
    """With a gradient, and with a rule for vmap, each an operator of its own."""
    ops = getattr(torch.ops, space)

    def backward(gradient: Tensor, saved: Tensor) -> Tensor:
        if lies:
            poke(saved)
        return gradient * 2

    def vmapped(x: Tensor) -> Tensor:
        if lies:
            poke(x)
        return x + 1

    graded = custom(f"{space}::graded", lambda x: x * 2, (), schema="(Tensor x) -> Tensor")
    custom(f"{space}::graded_backward", backward, (), schema="(Tensor gradient, Tensor saved) -> Tensor")
    graded.register_autograd(
        lambda ctx, gradient: ops.graded_backward(gradient, ctx.saved_tensors[0].detach()),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    mapped = custom(f"{space}::vmapped", vmapped, (), schema="(Tensor x) -> Tensor")
    mapped.register_vmap(lambda info, dims, x: (ops.vmapped(x), 0))
