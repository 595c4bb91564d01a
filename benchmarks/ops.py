"""How fast are the operators, against what a PyTorch user would write on the same tensors, and against memory itself?

    python benchmarks/ops.py [--quick] [--only WORD] [--seconds S] [--json FILE]

Everything is measured in one run, ours and theirs by turns, on weights that go round through more memory than caches
hold. The table shows ratios: `times faster` is theirs / ours, `of memory` the bytes that have to move divided by our
time, as a share of the bandwidth measured at the start. Of all times the lower tenth counts: what other processes take
away is not what is asked. Milliseconds depend on the machine; compare ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from esimd_ops import native, samples
from esimd_ops.reference import Decoder, fp8

PAST_CACHES = 256 << 20  # bytes of weights that one comparison goes round
MOST_COPIES = 24


@dataclass(frozen=True)
class Case:
    """One comparison. `make()` gives ours and theirs on tensors of their own; `bytes` have to move in one call."""

    operator: str
    sizes: str
    against: str
    bytes: int
    make: Callable[[], tuple[Callable[[], object], Callable[[], object]]]


@dataclass(frozen=True)
class Row:
    operator: str
    sizes: str
    against: str
    milliseconds: float
    times_faster: float
    of_memory: float


def half(*shape: int, spread: float = 1.0) -> Tensor:
    return samples.normal(*shape, spread=spread)


def size(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


# ---- what is compared, family by family


def int4(M: int, N: int, K: int) -> Case:
    """Against PyTorch's own int4 product, which takes bfloat16."""
    name = "esimd_gemv_int4" if M == 1 else "esimd_gemm_int4_pgrp"

    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        x, output = half(M, K), half(M, N)
        weight, scale = samples.int4_matrix(N, K)
        nibbles = torch.stack((weight & 15, weight >> 4), -1).flatten(-2).int()
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(nibbles, 2)
        zeros = torch.stack((scale.T, torch.zeros_like(scale.T)), -1).bfloat16().contiguous()
        wide = x.bfloat16()
        ours = getattr(torch.ops.esimd_ops, name)
        return (
            lambda: ours(x, weight, scale, output),
            lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(wide, packed, 128, zeros),
        )

    moved = N * K // 2 + 2 * N * K // 128 + 2 * M * (N + K)
    return Case(name, f"M {M} N {N} K {K}", "_weight_int4pack_mm_for_cpu, bf16", moved, make)


def fp16(M: int, N: int, K: int) -> Case:
    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        x, weight, output = half(M, K), half(N, K, spread=0.02), half(M, N)
        return (
            lambda: torch.ops.esimd_ops.esimd_gemv_fp16(x, weight, output),
            lambda: torch.matmul(x, weight.T, out=output),
        )

    return Case("esimd_gemv_fp16", f"M {M} N {N} K {K}", "matmul, fp16", 2 * (N * K + M * (N + K)), make)


def fp8_weights(M: int, N: int, K: int) -> Case:
    """There is no fp8 product for CPU tensors of this layout: a user widens the weight, or keeps it wide."""
    name = "esimd_gemv_fp8_pert" if M == 1 else "esimd_gemm_fp8_pert"

    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        x, output, scale = half(M, K), half(M, N), torch.tensor([0.02])
        weight = samples.fp8_matrix(N, K)
        wide = (fp8(weight, Decoder.EXACT, torch.float32) * scale).half()
        ours = getattr(torch.ops.esimd_ops, name)
        return lambda: ours(x, weight, scale, output), lambda: torch.matmul(x, wide.T, out=output)

    return Case(name, f"M {M} N {N} K {K}", "matmul of the widened fp16 weight", N * K + 2 * M * (N + K), make)


def rms_norm(T: int, K: int) -> Iterator[Case]:
    @torch.compile(dynamic=False)
    def formula(x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6) * weight.float()).half()

    def make(theirs: Callable[[Tensor, Tensor], Tensor]) -> tuple[Callable[[], object], Callable[[], object]]:
        x, output, weight = half(T, K), half(T, K), samples.norm_weight(K)
        return (
            lambda: torch.ops.esimd_ops.esimd_rms_norm(x, output, weight, 1e-6),
            lambda: theirs(x, weight),
        )

    sizes, moved = f"T {T} K {K}", 4 * T * K + 2 * K
    eager = lambda x, weight: F.rms_norm(x, (K,), weight, 1e-6)  # noqa: E731
    yield Case("esimd_rms_norm", sizes, "F.rms_norm", moved, lambda: make(eager))
    yield Case("esimd_rms_norm", sizes, "the formula, compiled", moved, lambda: make(formula))


def add_norm(T: int, K: int) -> Case:
    @torch.compile(dynamic=False)
    def formula(hidden: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        total = hidden.float() + residual.float()
        inverse = torch.rsqrt((total * total).mean(-1, keepdim=True) + 1e-6)
        return (total.half().float() * inverse * weight.float()).half(), total.half()

    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        hidden, residual, weight = half(T, K), half(T, K), samples.norm_weight(K)
        return (
            lambda: torch.ops.esimd_ops.esimd_fused_add_rms_norm_batched(hidden, residual, weight, 1e-6),
            lambda: formula(hidden, residual, weight),
        )

    moved = 8 * T * K + 2 * K
    return Case("esimd_fused_add_rms_norm_batched", f"T {T} K {K}", "the formula, compiled", moved, make)


def moe(E: int, N: int, K: int, T: int) -> Case:
    """One product for all experts, against a loop over them with the weights kept wide."""

    def make() -> tuple[Callable[[], object], Callable[[], object]]:
        arguments = samples.moe.moe_gemm_fp8_blockscale(E, N, K, T)
        starts = arguments["expert_idx"].tolist()
        wide = half(E, N, K, spread=0.02)
        x, output, values = arguments["input"], arguments["output"], list(arguments.values())

        def loop() -> None:
            for e in range(E):
                if starts[e] < starts[e + 1]:
                    torch.matmul(x[starts[e] : starts[e + 1]], wide[e].T, out=output[starts[e] : starts[e + 1]])

        return lambda: torch.ops.esimd_ops.esimd_moe_gemm_fp8_blockscale(*values), loop

    busy = min(E, T)
    return Case(
        "esimd_moe_gemm_fp8_blockscale",
        f"E {E} N {N} K {K} T {T}",
        "matmul in a loop over experts, fp16",
        busy * N * K + 2 * T * (N + K),
        make,
    )


def cases(quick: bool) -> list[Case]:
    shapes = [(2048, 2048), (4096, 4096)] if quick else [(2048, 2048), (4096, 4096), (16384, 2048), (2048, 8192)]
    tokens = (1, 8) if quick else (1, 8, 64)
    chosen = [make(M, N, K) for make in (int4, fp16, fp8_weights) for N, K in shapes for M in tokens]
    for T, K in [(1, 4096), (64, 4096)] if quick else [(1, 2048), (1, 8192), (8, 4096), (64, 4096)]:
        chosen += [*rms_norm(T, K), add_norm(T, K)]
    return [*chosen, moe(16, 512, 1024, 16), *([] if quick else [moe(64, 1024, 2048, 64)])]


# ---- measuring


def bandwidth() -> float:
    """Bytes a second that a plain sum reads."""
    memory = torch.ones(PAST_CACHES // 4)
    return size(memory) / min(once(memory.sum) for _ in range(5))


def once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(case: Case, seconds: float, memory: float) -> Row:
    copies = max(1, min(MOST_COPIES, PAST_CACHES // max(case.bytes, 1)))
    pairs = [case.make() for _ in range(copies)]
    for ours, theirs in pairs[:2]:  # the first call compiles
        ours(), theirs()
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < end or turn < 10:
        for work, taken in zip(pairs[turn % copies], times, strict=True):
            taken.append(once(work))
        turn += 1
    ours, theirs = (statistics.quantiles(taken, n=10)[0] for taken in times)
    return Row(case.operator, case.sizes, case.against, 1e3 * ours, theirs / ours, case.bytes / ours / memory)


def show(rows: list[Row], memory: float, console: Console) -> None:
    title = f"{native.load().device()['name']}, {torch.get_num_threads()} threads, memory {memory / 1e9:.1f} GB/s"
    table = Table("operator", "sizes", "against", title=title, header_style="bold")
    for heading in ("ms", "times faster", "of memory"):
        table.add_column(heading, justify="right")
    for row in rows:
        colour = "green" if row.times_faster >= 1 else "red"
        table.add_row(
            row.operator,
            row.sizes,
            row.against,
            f"{row.milliseconds:.3f}",
            f"[{colour}]{row.times_faster:.2f}[/]",
            f"{row.of_memory:.0%}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--only", default="", metavar="WORD", help="operators with this in their name")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each comparison")
    parser.add_argument("--json", metavar="FILE", help="write the rows to FILE too")
    options = parser.parse_args()

    native.load()
    torch.manual_seed(0)
    memory = bandwidth()
    with torch.no_grad():
        chosen = [case for case in cases(options.quick) if options.only in case.operator]
        progress = Console(stderr=True)
        rows = [measure(case, options.seconds, memory) for case in track(chosen, "measuring", console=progress)]
    show(rows, memory, Console())
    if options.json:
        document = {"memory_bytes_per_second": memory, "rows": [asdict(row) for row in rows]}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
