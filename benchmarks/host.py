"""ESIMD kernels on the host: how long a library takes to build and to check, and what each check costs.

    LLM_SCALER=checkout python benchmarks/host.py

Without LLM_SCALER the repository's own small kernels are measured instead. Build times are of a fresh folder, 2 jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKOUT = os.environ.get("LLM_SCALER")
TREE = Path(CHECKOUT) / "vllm" / "custom-esimd-kernels-vllm" if CHECKOUT else ROOT / "examples" / "esimd"
NAMESPACE = "custom_esimd_kernels_vllm" if CHECKOUT else "esimd_right"
ONLY = ["--only", "csrc/xpu/*"] if CHECKOUT else []
SANITIZERS = ("address", "undefined")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    print(f"{TREE.name}: {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        fast, checks = Path(folder, "fast"), Path(folder, "checks")
        print(f"build, as fast as it goes   {build(fast):7.1f} s")
        print(f"build, with checks          {build(checks, '--checks'):7.1f} s")
        seconds, words = timed("races", "--namespace", NAMESPACE, "--schedules", "descending", build=fast)
        print(f"decode shapes checked       {seconds:7.1f} s   {words}")
        rows = {"fast": run(fast), "fast, serial": run(fast, "descending,serial")}
        rows["two threads"] = run(fast, "descending,lockstep,threads=2")
        rows["with checks, none on"] = run(checks)
        rows["every access judged"] = run(checks, watched=True)
        base = rows["fast"]
        print(f"\nkernels of {len(base)} operators, decode shapes, total and slowdown (median of operators)")
        for name, times in rows.items():
            ratios = sorted(times[op] / base[op] for op in base)
            print(f"  {name:22} {sum(times.values()):7.2f} s   {ratios[len(ratios) // 2]:6.1f} x")


def build(out: Path, *more: str) -> float:
    seconds, _ = timed("host-build", str(TREE), "-o", str(out), *ONLY, *more)
    return seconds


def timed(*words: str, build: Path | None = None) -> tuple[float, str]:
    start = time.perf_counter()
    environment = {**os.environ, **({"PYTHONPATH": str(build)} if build else {})}
    command = [sys.executable, "-m", "esimd_ops", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    return time.perf_counter() - start, (done.stdout.splitlines() or [""])[-1]


def run(build: Path, schedule: str = "descending,lockstep", *, watched: bool = False) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(build), "SCHEDULE": schedule, "WATCHED": "1" if watched else ""}
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(build)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def measure() -> dict[str, float]:
    """In a process of its own: seconds of the quickest of three calls of each operator, its ordinary sample."""
    import importlib
    from contextlib import nullcontext

    from esimd_ops import registry
    from esimd_ops.races import trial
    from esimd_ops.races.watch import HostRuntime
    from esimd_ops.table import OPS
    from esimd_ops.trials import memory
    from esimd_ops.trials.subject import OfTable

    importlib.import_module(NAMESPACE)
    runtime = HostRuntime.loaded()
    runtime.schedule(os.environ["SCHEDULE"])
    seconds = {}
    for op, schema in registry.schemas(NAMESPACE).items():
        if op not in OPS:
            continue
        call = registry.overload(schema)
        subject = OfTable(OPS[op])
        for arguments in map(subject.make, subject.chosen("decode", beyond=False)):
            quickest = float("inf")
            for _ in range(3):
                guards = memory.guarded(arguments, "cpu")
                values = memory.values(arguments, guards)
                if os.environ["WATCHED"]:
                    for name, guarded in guards.items():
                        trial.watch(runtime, name, guarded.tensor, subject)
                with runtime.watching() if os.environ["WATCHED"] else nullcontext():
                    start = time.perf_counter()
                    call(*values)
                    quickest = min(quickest, time.perf_counter() - start)
            seconds[op] = quickest
    return seconds


if __name__ == "__main__":
    main()
