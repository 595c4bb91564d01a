"""What the guard costs a call: its twins in a compiled graph, and operators of ours in the place of others.

    python benchmarks/guard.py [--calls N]

Twins: each row calls the same cheap operator (`aten::fill_` of one element) the way a compiled graph calls it. The bare
call is what torch.compile would delete; the difference to it is the price. `custom_op` is torch.library.custom_op with
mutates_args around the operator. Replaced: our operator called directly, and in the place of the published one.
Medians of blocks of calls that take turns in one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from esimd_ops import native, replace, samples
from esimd_ops.guard.twins import calls as python_twin

BLOCKS = 30
OP = torch.ops.aten.fill_.Scalar
REPLACED = "esimd_rms_norm"
Calls = dict[str, Callable[[], object]]  # the first is what the others are compared with


def twins(library: torch.library.Library) -> Calls:
    """The same operator, called in different ways."""
    for name in ("python", "cpp"):
        library.define(f"{name}(Tensor(a!) self, Scalar value) -> ()")
    library.impl("python", python_twin(OP, ["DROP"]), "CompositeExplicitAutograd")
    extension = native.load()
    extension.implement_twin("guard_cost::cpp", "aten::fill_", "Scalar", [extension.Result.DROP])

    @torch.library.custom_op("guard_cost::wrapper", mutates_args=("self",))
    def wrapper(self: Tensor, value: float) -> None:
        OP(self, value)

    ops = torch.ops.guard_cost
    ways = {
        "bare call": OP,
        "guard's twin in C++": ops.cpp.default,
        "guard's twin in Python": ops.python.default,
        "torch.library.custom_op": ops.wrapper.default,
    }
    tensor = torch.zeros(())
    return {name: partial(call, tensor, 1.0) for name, call in ways.items()}


def replaced(library: torch.library.Library) -> Calls:
    """Our operator by its own name, and by that of one in whose place it stands."""
    library.define(f"{REPLACED}(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> Tensor(a!)")
    library.impl(REPLACED, lambda *_: 1 / 0, "CPU")
    replace.enable(f"custom_esimd_kernels_vllm::{REPLACED}")
    arguments = tuple(samples.make(REPLACED, (0, 64)).arguments.values())  # no kernel is launched for no rows
    ways = {
        f"esimd_ops::{REPLACED}, without rows": torch.ops.esimd_ops.esimd_rms_norm.default,
        "in the place of the published one": torch.ops.custom_esimd_kernels_vllm.esimd_rms_norm.default,
    }
    return {name: partial(call, *arguments) for name, call in ways.items()}


def block(call: Callable[[], object], calls: int) -> float:
    """Microseconds a call."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return 1e6 * (time.perf_counter() - start) / calls


def show(title: str, compared: Calls, calls: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in compared}
    with torch.no_grad():
        for _ in range(BLOCKS):
            for name, call in compared.items():
                times[name].append(block(call, calls))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    first = next(iter(medians.values()))
    table = Table(title, header_style="bold")
    for heading in ("µs a call", "more than the first"):
        table.add_column(heading, justify="right")
    for name, median in medians.items():
        table.add_row(name, f"{median:.2f}", f"{median - first:+.2f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000, help="in one block")
    calls = parser.parse_args().calls
    print(f"torch {torch.__version__}")
    own, published = (torch.library.Library(name, "FRAGMENT") for name in ("guard_cost", "custom_esimd_kernels_vllm"))
    show("called as", twins(own), calls)
    show("replaced", replaced(published), calls)


if __name__ == "__main__":
    main()
