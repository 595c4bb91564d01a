"""How long `audit` takes and how it grows: trees of 1,250, 2,500 and 5,000 C++ files, made of a checkout's own files.

    python benchmarks/audit_speed.py CHECKOUT [--files 1250 2500 5000]

Files are copied until there are enough; a second copy is another project: each operator, function and class that the
checkout defines has another name in it. Processor seconds are those of all processes and do not depend on what else the
machine does; the wall time does. Memory is the largest sum over all processes of what each has for itself and its share
of what they share (PSS), sampled.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from schema_patch.cpp import registrations
from schema_patch.inference.index.scan import scan
from schema_patch.text import files

PSS = re.compile(r"^Pss:\s+(\d+)", re.MULTILINE)
WORD = re.compile(rb"\w{4,}")


def sources(checkout: str) -> list[tuple[str, bytes]]:
    """The C++ files of a checkout, by their path in it."""
    found = []
    for path in files.find(checkout):
        data = Path(path).read_bytes() if os.path.isfile(path) else b"\0"
        if b"\0" not in data:
            found.append((os.path.relpath(path, checkout), data))
    return found


def defined(found: list[tuple[str, bytes]]) -> set[bytes]:
    """The names of the operators, functions and classes of these files, but for macros such as TORCH_LIBRARY."""
    names: set[str] = set()
    for path, data in found:
        index = scan(data, path)
        names |= {f.name for f in index.functions} | {c.name for c in index.classes}
        if registrations.may_register(data):
            source = registrations.read(data, path)
            names |= {r.schema.text.split("(")[0].rpartition("::")[2].strip() for r in source.registrations}
            names |= {i.op for i in source.implementations}
    return {name.encode("latin-1") for name in names if not name.endswith("_") and not name.isupper()}


def _tagged(tag: bytes, names: set[bytes], word: re.Match[bytes]) -> bytes:
    return word[0] + tag if word[0] in names else word[0]


def make(folder: Path, found: list[tuple[str, bytes]], names: set[bytes], count: int) -> None:
    """A tree of `count` files."""
    for number in range(count):
        copy, which = divmod(number, len(found))
        path, data = found[which]
        if copy:
            tag = f"_{copy}".encode()
            data = WORD.sub(partial(_tagged, tag, names), data)
        target = folder / f"copy{copy}" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def shared(parent: int) -> int:
    """Proportional memory, in bytes, of a process and its children."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            above = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent in (int(pid), above):
                pss = PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
                total += 1024 * int(pss[1]) if pss else 0
    return total


def measure(folder: Path) -> tuple[float, float, int, str]:
    """Processor seconds, wall seconds, peak memory in bytes, and the last line that the audit prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    command = [sys.executable, "-m", "schema_patch", "audit", str(folder), "--no-cache"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, shared(process.pid))
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    shown = process.communicate()[0]
    watcher.join()
    if process.returncode not in (0, 1):
        raise SystemExit(f"the audit ended with exit code {process.returncode}: nothing to time")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.monotonic() - start, peak, shown.strip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout")
    parser.add_argument("--files", type=int, nargs="+", default=[1250, 2500, 5000])
    arguments = parser.parse_args()
    found = sources(arguments.checkout)
    if not found:
        raise SystemExit(f"{arguments.checkout}: expected a tree of C++ files, found none")
    names = defined(found)
    size = sum(len(data) for _, data in found)
    print(f"{arguments.checkout}: {len(found)} files, {size / 1e6:.1f} MB, {len(names)} names; {os.cpu_count()} cores")
    print("| files | processor s | wall s | ms a file | peak MB | |\n|---:|---:|---:|---:|---:|---|")
    for count in arguments.files:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), found, names, count)
            spent, wall, peak, summary = measure(Path(folder))
        print(
            f"| {count} | {spent:.1f} | {wall:.1f} | {1000 * spent / count:.1f} | {peak / 1e6:.0f} | {summary} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
