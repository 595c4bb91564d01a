"""How fast the verifier reads real libraries, against `strings -n 8 | grep -e '->'` over the same files.

    python benchmarks/verify.py [--wheel vllm-xpu-kernels==0.1.16.2] [--rounds 5]

Fetches the wheel once into the cache folder of the tests, unpacks it to a temporary folder, and takes turns: each round
runs both whole programs, the files being in the page cache. Prints the median of the processor seconds of each, their
ratio, and the largest resident memory of the verifier; fails if the verifier is less than three times as fast, or takes
over 200 MB. The kit's byte code is kept from the first run on, as that of an installed kit is.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "real"))
from wheels import fetch  # noqa: E402

FASTER, MEMORY = 3.0, 200.0


def timed(command: list[str]) -> float:
    """Processor seconds, without those of a search for this machine's compile caches."""
    before = os.times()
    caches = dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"), "/nowhere")
    quiet = subprocess.DEVNULL
    subprocess.run(command, env=os.environ | caches, stdout=quiet, stderr=quiet, check=False)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def peak(command: list[str]) -> float:
    """The largest resident memory of one run, in MB; mapped pages of files count too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", default="vllm-xpu-kernels==0.1.16.2")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    wheel = fetch(options.wheel)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as compiled:
        os.environ |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        libraries = sorted(str(path) for path in Path(folder).rglob("*.so"))
        size = sum(Path(path).stat().st_size for path in libraries) / 1e6
        verifier = [
            sys.executable,
            "-c",
            "import sys; from schema_patch.commands.main import main_verify; sys.exit(main_verify())",
        ]
        ours = [*verifier, *libraries]
        theirs = ["sh", "-c", "for f; do strings -n 8 \"$f\" | grep -e '->'; done", "sh", *libraries]
        memory = {"the folder": peak(ours), "the wheel": peak([*verifier, str(wheel)])}
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(options.rounds):
            times["theirs"].append(timed(theirs))
            times["ours"].append(timed(ours))
    mine, other = (statistics.median(times[name]) for name in ("ours", "theirs"))
    print(f"{len(libraries)} libraries, {size:.0f} MB, {options.rounds} rounds, medians (least to most)")
    for name, title in (("theirs", "strings | grep"), ("ours", "verify-schemas")):
        least, most = min(times[name]), max(times[name])
        print(f"  {title:<15} {statistics.median(times[name]):6.2f} s ({least:.2f} to {most:.2f})")
    print(f"  {other / mine:.1f} times as fast; " + ", ".join(f"{mb:.0f} MB for {what}" for what, mb in memory.items()))
    good = other >= FASTER * mine and max(memory.values()) <= MEMORY
    if not good:
        print(f"expected at least {FASTER:.0f} times as fast and at most {MEMORY:.0f} MB", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
