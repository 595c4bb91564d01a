"""Liars of every kind, and honest operators that look like them: how each is called, and what is to be said of it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).parent
LIARS, HONEST = "observed_liars", "observed_honest"
TIMES = 6


@dataclass(frozen=True)
class Case:
    """`codes`: of the findings. `says`: words that one of them has. `table`: what it writes, what it returns."""

    run: Callable[[Any], object]
    codes: tuple[str, ...] = ()
    says: str = ""
    table: tuple[tuple[str, ...], str] | None = None


def build(folder: Path) -> Path:
    """The operators in C++, as a library to load."""
    library, root = folder / "observed.so", Path(torch.__file__).parent
    include = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    command = ["g++", "-std=c++20", "-O0", "-g0", "-fPIC", "-shared", "-w", *include, str(HERE / "operators.cpp")]
    link = [f"-L{root}/lib", "-lc10", "-ltorch_cpu", "-ltorch", f"-Wl,-rpath,{root}/lib", "-pthread"]
    subprocess.run([*command, "-o", str(library), *link], check=True)
    return library


def x(*shape: int) -> Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape or (6,)).numel()).view(shape or (6,))


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape or (6,))


def again(run: Callable[[Any], object]) -> Callable[[Any], object]:
    """Several calls, each result held until the end."""
    return lambda op: [run(op) for _ in range(TIMES)]


def consumed(op: Any) -> None:
    """Results that are read and dropped at once."""
    for n in range(TIMES):
        op(x() + n).sum()


def nan(op: Any) -> None:
    op(torch.full((4,), torch.nan))


def big(op: Any) -> None:
    op(torch.arange(float(5 << 20)))


def with_rows(op: Any) -> None:
    op(x(2, 3), torch.zeros(2, 8)[:, :3])


def kept_argument(op: Any) -> None:
    """Its caller has another operator keep a tensor, and holds it."""
    for _ in range(2):
        held = x()
        torch.ops.observed_honest.keeps_argument(held)
        op(x(3))


def either(op: Any) -> None:
    op(x(), zeros())
    same = x()
    op(same, same)


def beside(where: int, view: slice) -> Callable[[Any], object]:
    return lambda op: op(x(2), zeros(12)[view], where)


LIES = {
    "out_void": Case(lambda op: op(x(), zeros()), ("SP101",), "'out' in 1 of 1 watched calls, up to 10 of 24 bytes", (("out",), "nothing")),
    "out_returned": Case(lambda op: op(x(), zeros()), ("SP101", "SP103"), "returns 'out'", (("out",), "out")),
    "out_declared_returned_as_new": Case(lambda op: op(x(), zeros()), ("SP103",), "returns 'out'", (("out",), "out")),
    "partly": Case(lambda op: op(x(), zeros(), zeros()), ("SP102",), "writes 'o1' undeclared; only 'o0'", (("o0", "o1"), "nothing")),
    "the_other": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'", (("x", "out"), "nothing")),
    "in_list": Case(lambda op: op(x(), [zeros(), zeros()]), ("SP101",), "writes 'outs'", (("outs",), "nothing")),
    "optional": Case(lambda op: [op(x()), op(x(), zeros())], ("SP101", "SP103"), "writes 'out'", (("out",), "out")),
    "keyword": Case(lambda op: op(x(), out=zeros()), ("SP101",), "writes 'out'"),
    "strided": Case(with_rows, ("SP101",), "of 24 bytes"),
    "one_byte": Case(lambda op: op(torch.zeros(9, dtype=torch.uint8)), ("SP101",), "up to 1 of 9 bytes"),
    "swap_ends": Case(lambda op: op(x()), ("SP101",), "writes 'x'"),
    "negate_two": Case(lambda op: op(torch.ones(2, dtype=torch.float64)), ("SP101",), "up to 2 of 16 bytes"),
    "other_nan": Case(nan, ("SP101",), "up to 1 of 16 bytes"),
    "other_zero": Case(lambda op: op(zeros(4)), ("SP101",), "up to 1 of 16 bytes"),
    "when": Case(lambda op: [op(x(), False), op(x(), True), op(x(), False)], ("SP101",), "'x' in 1 of 3 watched calls"),
    "past_the_end": Case(beside(2, slice(4, 6)), ("OB101",), "beside its arguments, in the storage of out"),
    "before_the_start": Case(beside(-1, slice(4, 6)), ("OB101",), "beside its arguments, in the storage of out"),
    "as_it_is": Case(lambda op: op(x()), ("SP103",), "returns 'x' as if", ((), "x")),
    "tail": Case(lambda op: op(x()), ("SP103",), "returns memory of 'x'", ((), "unknown")),
    "with_input": Case(lambda op: op(x(2, 3)), ("SP103",), "returns memory of 'x'", ((), "fresh, unknown")),
    "twins": Case(lambda op: op(x(2, 3)), ("OB102",), "results 0 and 1 share memory", ((), "fresh, unknown")),
    "kept": Case(consumed, ("OB101", "SP104"), "(call 1) is that of", ((), "private buffer")),
    "ring": Case(again(lambda op: op(x())), ("SP104",), "(call 1) is that of", ((), "private buffer of 4")),
    "kept_blob": Case(again(lambda op: op(x())), ("SP104",), "(call 1) is that of", ((), "private buffer")),
    "kept_second": Case(lambda op: [op(x()), op(x())], ("SP104",), "that it keeps", ((), "fresh, private buffer")),
    "kept_by_shape": Case(lambda op: [op(x(n)) for n in (2, 3, 2, 3)], ("SP104",), "that it keeps", ((), "private buffer")),
    "kept_in_list": Case(again(lambda op: op(x())), ("SP104",), "that it keeps"),
    "constant": Case(again(lambda op: op(x())), ("SP104",), "that it keeps", ((), "private buffer")),
    "writes_last": Case(again(lambda op: op(x())), ("OB101",), "changed the result that was handed out by observed_liars::writes_last"),
    "resized": Case(lambda op: op(x(), torch.empty(0)), ("SP101",), "writes 'out'"),
    "other_storage": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'"),
    "by_a_thread": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'"),
    "large": Case(big, ("SP101",), "writes 'x'"),
    "python": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'", (("out",), "nothing")),
    "python_custom": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'"),
    "python_triton": Case(lambda op: op(x(), zeros()), ("SP101",), "writes 'out'"),
    "python_kept": Case(consumed, ("OB101", "SP104"), "that it keeps"),
    "python_overload.two": Case(lambda op: op(x(), zeros(), 2), ("SP101",), "writes 'out'"),
    "two_of_one_memory": Case(either, ("SP101",), "writes 'out'", (("out",), "nothing")),
    "at_times": Case(lambda op: [op(x(2, 3).t()), op(x(2, 3))], ("SP103",), "returns 'x' as if it were a new tensor: 1 watched call", ((), "unknown")),
    "sparse": Case(lambda op: op(torch.eye(3).to_sparse()), ("SP101",), "'x' in 1 of 1 watched calls, up to 6 of 12 bytes"),
    "sparse_rows": Case(lambda op: op(torch.eye(3).to_sparse_csr()), ("SP101",), "writes 'x'"),
    "inner_replaced": Case(lambda op: op(Boxed(x())), ("SP101",), "writes 'x'"),
    "hands_back": Case(kept_argument, ("SP104",), "'x' of observed_honest::keeps_argument", ((), "private buffer")),
    "writes_kept": Case(kept_argument, ("OB101",), "changed 'x', given to observed_honest::keeps_argument"),
    "from_a_thread": Case(lambda op: in_threads(lambda _: op(x(), zeros())), ("SP101",), "'out' in 8 of 8"),
}  # fmt: skip


def by_numpy(op: Any) -> None:
    """Several tensors over one memory, which torch knows as several storages."""
    result = torch.ops.observed_honest.frees_and_takes(x())
    op(x(), torch.from_numpy(result.numpy()))
    bytes_ = zeros().numpy()
    for out in [torch.from_numpy(bytes_) for _ in range(TIMES)]:
        torch.ops.observed_honest.frees_and_takes(out)
        op(x(), out)


def trained_by_hand(op: Any) -> None:
    weight, other = x(), x()
    for _ in range(TIMES):
        torch.ops.observed_honest.frees_and_takes(weight)
        op(other, weight)
        weight.sub_(0.5)
        torch.ops.observed_honest.frees_and_takes(other.add_(1))


def in_threads(work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


def arena(op: Any) -> None:
    """Threads write beside each other in one storage, and each holds still what it reads."""
    whole, ready = torch.zeros(4, 1000), threading.Barrier(4)

    def work(row: int) -> None:
        for _ in range(50):
            ready.wait()
            op(torch.rand(1000), whole[row])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def holder_writes(op: Any) -> None:
    results = []
    for _ in range(TIMES):
        results.append(op(x()))
        for result in results:
            result.add_(1)


def dropped(op: Any) -> None:
    """The allocator gives the same memory again and again."""
    for size in (64, 100_000):
        for _ in range(2 * TIMES):
            op(x(size))


def refused(op: Any) -> None:
    for _ in range(2):
        try:
            op(x())
        except RuntimeError:
            continue


def in_inference(op: Any) -> None:
    with torch.inference_mode():
        held = [op(x()) for _ in range(TIMES)]
        for each in held:
            each.mul_(2)


def trained(op: Any) -> None:
    weight = x().requires_grad_()
    for _ in range(2):
        op(weight).sum().backward()


def compiled(op: Any) -> None:
    for dynamic in (False, True):
        torch._dynamo.reset()
        torch.compile(lambda t: op(t) + 1, backend="aot_eager", dynamic=dynamic)(x())


def one_memory(op: Any) -> object:
    same = x()
    return op(same, same)


ANSWERS = {
    "out_void": Case(lambda op: op(x(), zeros())),
    "out_returned": Case(lambda op: op(x(), zeros()), ("SP105",)),
    "two": Case(lambda op: op(x(), zeros(), zeros())),
    "in_list": Case(lambda op: op(x(), [zeros(), zeros()])),
    "keyword": Case(lambda op: op(x(), out=zeros())),
    "gaps": Case(with_rows),
    "part_of_an_arena": Case(arena),
    "from_threads": Case(lambda op: in_threads(lambda _: op(x(), zeros()))),
    "nothing_new": Case(again(lambda op: op(x())), (), "no byte of it changed: written with the same value, or only read"),
    "scratch": Case(again(lambda op: op(x()))),
    "frees_and_takes": Case(dropped),
    "chunks": Case(again(lambda op: op(x()))),
    "declared_view": Case(lambda op: op(x()), ("SP105",)),
    "count": Case(lambda op: op(x())),
    "several": Case(again(lambda op: op(x()))),
    "positive": Case(lambda op: op(x() - 3)),
    "refuses": Case(refused, (), "raised an error (2)"),
    "random_like": Case(again(lambda op: op(x()))),
    "random_in_place": Case(again(lambda op: op(x()))),
    "aliased_inputs": Case(one_memory),
    "input_is_output": Case(one_memory),
    "empty": Case(lambda op: op(x(0), zeros(0)), (), "was never given"),
    "resized": Case(lambda op: op(x(), torch.empty(0))),
    "by_a_thread": Case(lambda op: op(x(), zeros())),
    "expanded": Case(lambda op: op(x(), torch.ones(1).expand(6))),
    "holder_writes": Case(holder_writes),
    "inference": Case(in_inference),
    "large": Case(lambda op: op(torch.ones(5 << 20), torch.ones(5 << 20))),
    "python_custom": Case(again(lambda op: op(x(), zeros()))),
    "python_triton": Case(again(lambda op: op(x(), zeros()))),
    "python_trained": Case(trained),
    "python_compiled": Case(compiled),
    "python_nested": Case(again(lambda op: op(x()))),
    "python_own_state": Case(again(lambda op: op(x()))),
    "subclass": Case(lambda op: op(Boxed(x()), Boxed(zeros()))),
    "half_used": Case(again(lambda op: op(x(), zeros()))),
    "over_numpy": Case(by_numpy),
    "updates": Case(trained_by_hand),
    "keeps_argument": Case(lambda op: op(x())),
    "sparse": Case(again(lambda op: op(torch.eye(3).to_sparse()))),
    "sparse_written": Case(again(lambda op: op(torch.eye(3).to_sparse()))),
}  # fmt: skip


class Boxed(torch.Tensor):
    """A tensor made of another, as quantized ones are."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Boxed:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], meta: None, size: Any, stride: Any) -> Boxed:
        return Boxed(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "inner_replaced" in str(function):
            args[0].inner = args[0].inner * 2
            return None
        plain = [each.inner if isinstance(each, Boxed) else each for each in args]
        return function(*plain, **(kwargs or {}))


kept: list[Tensor] = []
state: list[Tensor] = []
given: list[Tensor] = []


def define() -> list[torch.library.Library]:
    """The operators in Python. They live as long as what is returned."""
    liars, honest = torch.library.Library(LIARS, "FRAGMENT"), torch.library.Library(HONEST, "FRAGMENT")

    def write(x: Tensor, out: Tensor) -> None:
        out.copy_(x * 2)

    def keep(x: Tensor) -> Tensor:
        kept.append(torch.empty_like(x)) if not kept else None
        return kept[0].copy_(x * (2 + len(state)))

    def own_state(x: Tensor) -> Tensor:
        """Keeps what another operator gave it, and has a third write there."""
        if not state:
            state.append(torch.ops.observed_honest.scratch(x))
        torch.ops.observed_honest.random_in_place(state[0])
        return x + 1

    for schema, function in {
        "python(Tensor x, Tensor out) -> ()": write,
        "python_kept(Tensor x) -> Tensor": lambda x: keep(x).add_(len(kept)),
        "python_overload(Tensor x) -> Tensor": lambda x: x + 1,
        "python_overload.two(Tensor x, Tensor out, int n) -> ()": lambda x, out, n: write(x, out),
        "two_of_one_memory(Tensor x, Tensor out) -> ()": write,
        "from_a_thread(Tensor x, Tensor out) -> ()": write,
        "at_times(Tensor x) -> Tensor": lambda x: x.contiguous(),
        "sparse(Tensor x) -> ()": nothing(lambda x: x._values().mul_(3)),
        "sparse_rows(Tensor x) -> ()": nothing(lambda x: x.values().mul_(3)),
        "inner_replaced(Tensor x) -> ()": nothing(lambda x: x),
        "hands_back(Tensor x) -> Tensor": lambda x: given[-1],
        "writes_kept(Tensor x) -> ()": nothing(lambda x: given[-1].add_(1)),
    }.items():
        liars.define(schema)
        liars.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    for schema, function in {
        "python_nested(Tensor x) -> Tensor": lambda x: torch.ops.observed_honest.frees_and_takes(x),
        "python_own_state(Tensor x) -> Tensor": own_state,
        "subclass(Tensor x, Tensor(a!) out) -> ()": write,
        "half_used(Tensor x, Tensor(a!) out, Tensor? mask=None) -> ()": lambda x, out, mask=None: write(x, out),
        "over_numpy(Tensor x, Tensor(a!) out) -> ()": write,
        "updates(Tensor x, Tensor(a!) out) -> ()": write,
        "keeps_argument(Tensor x) -> ()": nothing(given.append),
        "sparse(Tensor x) -> Tensor": lambda x: x * 2,
        "sparse_written(Tensor(a!) x) -> ()": nothing(lambda x: x._values().mul_(3)),
    }.items():
        honest.define(schema)
        honest.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    custom(f"{LIARS}::python_custom", write, ())
    custom(f"{HONEST}::python_custom", write, ("out",))
    torch.library.triton_op(f"{LIARS}::python_triton", write, mutates_args=())
    torch.library.triton_op(f"{HONEST}::python_triton", write, mutates_args=("out",))
    custom(f"{HONEST}::python_compiled", lambda x: x * 2, (), schema="(Tensor x) -> Tensor").register_fake(
        torch.empty_like
    )
    trained = custom(f"{HONEST}::python_trained", lambda x: x * 2, (), schema="(Tensor x) -> Tensor")
    trained.register_autograd(lambda context, grad: grad * 2)
    return [liars, honest]


def nothing(function: Callable[[Tensor], object]) -> Callable[[Tensor], None]:
    def kernel(x: Tensor) -> None:
        function(x)

    return kernel


def custom(name: str, function: Any, writes: tuple[str, ...], schema: str | None = None) -> Any:
    return torch.library.custom_op(name, function, mutates_args=writes, schema=schema)
