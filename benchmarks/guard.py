"""What the guard costs a call in a compiled graph: its twins, against the wrapper that people would write instead.

    python benchmarks/guard.py [--calls N]

Each row calls the same cheap operator (`aten::fill_` of one element) the way a compiled graph calls it. The bare call
is what torch.compile would delete; the difference to it is the price. `custom_op` is torch.library.custom_op with
mutates_args around the operator. Medians of blocks of calls that take turns in one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from esimd_ops import native
from esimd_ops.guard.twins import calls as python_twin

BLOCKS = 30
OP = torch.ops.aten.fill_.Scalar


def ways(library: torch.library.Library) -> dict[str, Callable[[Tensor, float], object]]:
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
    return {
        "bare call": OP,
        "guard's twin in C++": ops.cpp.default,
        "guard's twin in Python": ops.python.default,
        "torch.library.custom_op": ops.wrapper.default,
    }


def block(call: Callable[[Tensor, float], object], tensor: Tensor, calls: int) -> float:
    """Microseconds a call."""
    start = time.perf_counter()
    for _ in range(calls):
        call(tensor, 1.0)
    return 1e6 * (time.perf_counter() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000, help="in one block")
    calls = parser.parse_args().calls

    library = torch.library.Library("guard_cost", "FRAGMENT")
    compared = ways(library)
    times: dict[str, list[float]] = {name: [] for name in compared}
    tensor = torch.zeros(())
    with torch.no_grad():
        for _ in range(BLOCKS):
            for name, call in compared.items():
                times[name].append(block(call, tensor, calls))
    bare = statistics.median(times["bare call"])
    table = Table("called as", header_style="bold", title=f"torch {torch.__version__}")
    for heading in ("µs a call", "over the bare call"):
        table.add_column(heading, justify="right")
    for name, taken in times.items():
        median = statistics.median(taken)
        table.add_row(name, f"{median:.2f}", f"{median - bare:+.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
