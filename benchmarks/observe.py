"""What observing costs: a loop of 100,000 small calls and a decode loop, with budgets, and when it is off.

    python benchmarks/observe.py [--calls N] [--steps N] [--vllm VENV]

The small calls are of an operator in Python that writes one element: about the cheapest there is, so that what stands
in its way shows. The decode loop is that of a language model at batch 8: for each token 8 layers of norm, product,
rotary embedding, a write into a paged cache of 8 MiB and attention, the operators' own as `torch.library` ones, and a
prompt of a new length now and then. Times are those of one run after a warm-up; `share` is what the kit measured of
itself, `slower` what the clock says. With VENV, an environment that `make test-vllm` made, vLLM's own decode loop is
the third.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from esimd_ops.observe import observe

NAMESPACE = "observe_cost"
LAYERS, HIDDEN, BATCH, SLOTS = 8, 512, 8, 4096
BUDGETS: tuple[float | None, ...] = (0.01, 0.05, None)


def define() -> torch.library.Library:
    library = torch.library.Library(NAMESPACE, "FRAGMENT")

    def norm(x: Tensor, out: Tensor) -> None:
        torch.mul(x, torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), out=out)

    def linear(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight

    def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> None:
        half = x.shape[-1] // 2
        x.copy_(x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin)

    def store(x: Tensor, cache: Tensor, slots: Tensor) -> None:
        cache.index_copy_(0, slots, x)

    def attend(x: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
        kept = cache.index_select(0, slots)
        return torch.softmax(x @ kept.T, -1) @ kept

    kernels: dict[str, Callable[..., object]] = {
        "one(Tensor(a!) x) -> ()": lambda x: x.fill_(1.0),
        "norm(Tensor x, Tensor(a!) out) -> ()": norm,
        "linear(Tensor x, Tensor weight) -> Tensor": linear,
        "rotary(Tensor(a!) x, Tensor cos, Tensor sin) -> ()": rotary,
        "store(Tensor x, Tensor(a!) cache, Tensor slots) -> ()": store,
        "attend(Tensor x, Tensor cache, Tensor slots) -> Tensor": attend,
    }
    for schema, function in kernels.items():
        library.define(schema)
        returns = not schema.endswith("()")
        kernel = function if returns else _nothing(function)
        library.impl(schema.partition("(")[0], kernel, "CPU")
    return library


def _nothing(function: Callable[..., object]) -> Callable[..., None]:
    def kernel(*args: Tensor) -> None:
        function(*args)

    return kernel


def small_calls(count: int) -> Callable[[], None]:
    tensor, op = torch.zeros(1), torch.ops.observe_cost.one

    def run() -> None:
        for _ in range(count):
            op(tensor)

    return run


def decode(steps: int) -> Callable[[], None]:
    ops = torch.ops.observe_cost
    torch.manual_seed(0)
    weights = [torch.randn(HIDDEN, HIDDEN) / HIDDEN**0.5 for _ in range(LAYERS)]
    caches = [torch.zeros(SLOTS, HIDDEN) for _ in range(LAYERS)]
    cos, sin = torch.ones(HIDDEN), torch.zeros(HIDDEN)

    def token(tokens: int, step: int) -> None:
        x = torch.randn(tokens, HIDDEN)
        slots = (torch.arange(tokens) + step * BATCH) % (SLOTS)
        for weight, cache in zip(weights, caches, strict=True):
            out = torch.empty_like(x)
            ops.norm(x, out)
            y = ops.linear(out, weight)
            ops.rotary(y, cos, sin)
            ops.store(y, cache, slots)
            x = x + ops.attend(y, cache, torch.arange(256))

    def run() -> None:
        with torch.inference_mode():
            for step in range(steps):
                token(BATCH, step)
                if step % 25 == 0:
                    token(32 + step // 25, step)  # a prompt

    return run


def timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def of_vllm(venv: Path) -> Iterator[list[Any]]:
    """What observe_vllm.py told."""
    words = [str(venv / "bin" / "python"), str(Path(__file__).with_name("observe_vllm.py")), str(venv / "model")]
    settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(words, env=settings, stdout=subprocess.PIPE, text=True, check=True)
    yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


def add(table: Table, name: str, budget: str, took: float, bare: float, *told: float) -> None:
    share, watched, calls = told or (0, 0, 0)
    seen = (f"{share:.1%}", f"{watched} of {calls} seen") if told else ("", "")
    table.add_row(name, budget, f"{took:.2f}", f"{took / bare - 1:+.1%}" if took != bare else "", *seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--vllm", type=Path)
    asked = parser.parse_args()
    library = define()
    table = Table("loop", "budget", header_style="bold", title=f"torch {torch.__version__}")
    for heading in ("seconds", "slower", "share", "calls watched"):
        table.add_column(heading, justify="right")
    loops = {
        f"{asked.calls} small calls": small_calls(asked.calls),
        f"decode, {asked.steps} steps": decode(asked.steps),
    }
    for name, run in loops.items():
        timed(run)
        add(table, name, "not observed", bare := timed(run), bare)
        for budget in BUDGETS:
            with observe(NAMESPACE, budget=budget) as seen:
                took = timed(run)
            record = seen.record
            watched, calls = (
                sum(getattr(op, field) for op in record.operators.values()) for field in ("watched", "calls")
            )
            words = f"{budget:.0%}" if budget else "none"
            add(table, name, words, took, bare, record.spent_s / record.ran_s, watched, calls)
        add(table, name, "off again", timed(run), bare)
    if asked.vllm:
        rows = list(of_vllm(asked.vllm))
        for budget, took, *told in rows:
            add(table, "vLLM, 64 times 256 tokens", budget, took, rows[0][1], *told)
    with nullcontext(library):
        Console().print(table)


if __name__ == "__main__":
    main()
