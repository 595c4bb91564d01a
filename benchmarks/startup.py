"""What the first use of a kernel costs: compiled anew, from the kernel cache, and when several processes start at once.

    python benchmarks/startup.py [--processes N]

Each row is a fresh process; its time runs from the first call of one operator to its result, imports left out. The last
rows use a cache that is already warm: processes that start together should not wait for one another.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

PROGRAM = """
import time, torch
from esimd_ops import native, samples
native.load()
values = list(samples.make("{operator}").arguments.values())
start = time.perf_counter()
torch.ops.esimd_ops.{operator}(*values)
first = time.perf_counter()
torch.ops.esimd_ops.{operator}(*values)
print(first - start, time.perf_counter() - first)
"""
OPERATORS = ("esimd_rms_norm", "esimd_gemv_int4", "esimd_gdn_conv_fused_seq")


def start(operator: str, cache: str) -> subprocess.Popen[str]:
    program = PROGRAM.format(operator=operator)
    environment = {**os.environ, "SYCL_CACHE_DIR": cache}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def first_call(process: subprocess.Popen[str]) -> float:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a process ended with {process.returncode}")
    return float(out.split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=8, help="that start at once")
    count = parser.parse_args().processes
    table = Table("operator", header_style="bold", title="seconds to the first result")
    for heading in ("compiled", "from the cache", f"{count} at once, slowest"):
        table.add_column(heading, justify="right")
    for operator in OPERATORS:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (first_call(start(operator, cache)) for _ in range(2))
            together = [start(operator, cache) for _ in range(count)]
            slowest = max(first_call(process) for process in together)
        table.add_row(operator, f"{cold:.2f}", f"{warm:.2f}", f"{slowest:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
