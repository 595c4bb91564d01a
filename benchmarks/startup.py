"""What the first use of a kernel costs: compiled anew, from the kernel cache, and when several processes start at once.

    python benchmarks/startup.py [--processes N] [--library FILE]

Each figure is of a fresh process: seconds, and processor seconds, from the first call of an operator to its result,
imports left out. The last column has a warm cache: processes that start together should not wait for one another.
`--library`: another build of the extension, as that of `make bmg`, which has its kernels as images.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

from esimd_ops import native

PROGRAM = """
import time, torch
from esimd_ops import native, samples
if {library!r}:
    native.prepare_runtime()
    torch.ops.load_library({library!r})
else:
    native.load()
values = list(samples.make("{operator}").arguments.values())
start, worked = time.perf_counter(), time.process_time()
torch.ops.esimd_ops.{operator}(*values)
print(time.perf_counter() - start, time.process_time() - worked)
"""
OPERATORS = ("esimd_rms_norm", "esimd_gemv_int4", "esimd_gdn_conv_fused_seq")


def start(operator: str, cache: str, library: str) -> subprocess.Popen[str]:
    program = PROGRAM.format(operator=operator, library=library)
    environment = {**os.environ, "SYCL_CACHE_DIR": cache}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def first_call(process: subprocess.Popen[str]) -> tuple[float, float]:
    """Seconds of the first call, and processor seconds."""
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a process ended with {process.returncode}")
    wall, processor = map(float, out.split())
    return wall, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=8, help="that start at once")
    parser.add_argument("--library", default="", metavar="FILE", help="the extension [default: the installed one]")
    options = parser.parse_args()
    count, library = options.processes, options.library
    table = Table(header_style="bold", title=f"seconds to the first result, {native.load().device()['name']}")
    table.add_column("operator", overflow="fold")
    for heading in ("first", "processor", "from the cache", "processor", f"{count} at once, slowest"):
        table.add_column(heading, justify="right")
    for operator in OPERATORS:
        with tempfile.TemporaryDirectory() as cache:
            alone = [second for _ in range(2) for second in first_call(start(operator, cache, library))]
            together = [start(operator, cache, library) for _ in range(count)]
            slowest = max(first_call(process)[0] for process in together)
        table.add_row(operator, *(f"{second:.2f}" for second in (*alone, slowest)))
    Console().print(table)


if __name__ == "__main__":
    main()
