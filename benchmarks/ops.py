"""How fast are the operators, against what a PyTorch user would write on the same tensors, and against memory itself?

    python benchmarks/ops.py [--quick] [--only WORD] [--seconds S] [--json FILE]

Everything is measured in one run, on weights that go round through more memory than caches hold. Ours and theirs take
turns in blocks of calls, not call by call: the threads of one stay awake for a while and take the cores of the other.
The table shows ratios: `times faster` is theirs / ours, `of memory` the bytes that have to move divided by our time, as
a share of the bandwidth measured at the start. Of all times the lower tenth counts: what other processes take away is
not what is asked. Milliseconds depend on the machine; compare ratios, and leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from comparisons import Case, Work, cases, size
from rich.console import Console
from rich.progress import track
from rich.table import Table

from esimd_ops import native

PAST_CACHES = 256 << 20  # bytes of weights that one comparison goes round
MOST_COPIES = 24
BLOCKS = 4  # of each side


@dataclass(frozen=True)
class Row:
    operator: str
    sizes: str
    against: str
    milliseconds: float
    times_faster: float
    of_memory: float


def bandwidth() -> float:
    """Bytes a second that a plain sum reads."""
    memory = torch.ones(PAST_CACHES // 4)
    return size(memory) / min(once(memory.sum) for _ in range(5))


def once(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def versions() -> tuple[float, float]:
    """Microseconds of a call without rows, which launches nothing: one whose writes autograd sees, and one in inference
    mode, where nothing is counted."""
    empty = torch.empty(0, 64).half()
    call, values = torch.ops.esimd_ops.esimd_rms_norm, (empty, empty.clone(), torch.ones(64).half(), 1e-6)

    def best() -> float:
        return 1e6 * min(once(lambda: [call(*values) for _ in range(2000)]) for _ in range(20)) / 2000

    seen = best()
    with torch.inference_mode():
        return seen, best()


def block(works: list[Work], seconds: float) -> list[float]:
    """Times of calls in a row, those of the first quarter left out, in which the threads of others come to rest."""
    times: list[float] = []
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds or len(times) < 5:
        taken = once(works[len(times) % len(works)])
        if now >= begin + seconds / 4:
            times.append(taken)
    return times


def measure(case: Case, seconds: float, memory: float) -> Row:
    copies = max(1, min(MOST_COPIES, PAST_CACHES // max(case.bytes, 1)))
    pairs = [case.make() for _ in range(copies)]
    sides = [list(side) for side in zip(*pairs, strict=True)]
    for side in sides:  # the first calls compile
        for work in side:
            work()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(BLOCKS):
        for side, taken in zip(sides, times, strict=True):
            taken += block(side, seconds / BLOCKS / 2)
    ours, theirs = (statistics.quantiles(taken, n=10)[0] for taken in times)
    return Row(case.operator, case.sizes, case.against, 1e3 * ours, theirs / ours, case.bytes / ours / memory)


def show(rows: list[Row], memory: float, console: Console) -> None:
    title = f"{native.load().device()['name']}, {torch.get_num_threads()} threads, memory {memory / 1e9:.1f} GB/s"
    table = Table(title=title, header_style="bold")
    for heading in ("operator", "sizes", "against"):
        table.add_column(heading, overflow="fold")  # a name that is cut is no name
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
    seen, uncounted = versions()
    Console().print(f"a call whose writes autograd sees: {seen:.2f} µs; in inference mode: {uncounted:.2f} µs")
    if options.json:
        document = {
            "memory_bytes_per_second": memory,
            "call_us": [seen, uncounted],
            "rows": [asdict(row) for row in rows],
        }
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
