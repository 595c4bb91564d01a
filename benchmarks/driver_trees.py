"""Sources of other SYCL trees by the compiler driver, one by one: which become a library for bmg, what stops others.

    python benchmarks/driver_trees.py TREE [-I DIR…] [--only PATTERN] [--first N] [--out FILE.jsonl]

TREE is a checkout of a tree that driver_trees.toml knows by its folder's name: its sources, and the options of its own
build, which CMake would give them. Nothing of it is kept here. Each file is compiled and linked alone, device code for
bmg; what other files define may be missing. -I: headers of others that its build fetches. A file is

    built     with so many kernels; none for a source that has only host code
    stopped   with the first message of the compiler
    late      not done in time, on this machine and under its load
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from torch.utils import cpp_extension

from schema_patch.build.driver import home, link, runtime
from schema_patch.installed.runtime import of_torch
from schema_patch.model import ToolError

PATIENCE = 900  # seconds for one file


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    """driver_trees.toml."""

    sources: str
    words: str
    link: str


TREES = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, Tree])


def environment(folder: Path) -> dict[str, str]:
    """That of a build which finds the driver under icpx's name, as `rebuild` makes it."""
    found = home.create(folder / "compiler", runtime.find(), xpu=bool(of_torch()[0]))
    return {**home.joined(found, os.environ), link.RECORD: str(folder / "made")}


def command(tree: Path, source: Path, include: list[Path], made: Path) -> list[str]:
    known = TREES[tree.name]
    torch = cpp_extension.include_paths()
    folders = [*include, *torch, sysconfig.get_paths()["include"]]
    words = shlex.split(known.words.format(tree=tree, folder=source.parent))
    libraries = ["-shared", f"-L{Path(torch[0]).parent / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    before = ["icpx", *words, "-w", *(f"-I{folder}" for folder in folders)]
    return [*before, str(source), *shlex.split(known.link), *libraries, "-o", str(made)]


def built(tree: Path, name: str, include: list[Path]) -> dict[str, str]:
    """What became of one source: `file`, `kind`, and as `told` how many kernels it has, or what stopped it."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "made").mkdir()
        argv = command(tree, tree / name, include, folder / "made.so")
        try:
            done = subprocess.run(
                argv, env=environment(folder), capture_output=True, text=True, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return {"file": name, "kind": "late", "told": ""}
        kernels = sum(one.kernels for one in link.records(folder / "made"))
    if not done.returncode:
        return {"file": name, "kind": "built", "told": str(kernels)}
    lines = done.stderr.splitlines() or ["ended in silence"]
    told = next((line for line in lines if "error:" in line), lines[-1])
    return {"file": name, "kind": "stopped", "told": told.replace(f"{tree}/", "")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("-I", "--include", type=Path, action="append", default=[])
    parser.add_argument("--only", default="*", help="a pattern of paths in the tree")
    parser.add_argument("--first", type=int, help="no more than so many, the smallest first")
    parser.add_argument("--out", type=Path, help="results, a line each; what is in it is not built again")
    given = parser.parse_args()
    tree = given.tree.resolve()
    if tree.name not in TREES:
        raise ToolError(f"expected a checkout called {' or '.join(TREES)}", str(given.tree))
    paths = [path for path in tree.glob(TREES[tree.name].sources) if path.suffix in (".cpp", ".cc")]
    paths.sort(key=lambda path: (path.stat().st_size, path))
    old = given.out.read_text().splitlines() if given.out and given.out.exists() else []
    rows = [json.loads(line) for line in old]
    known = {row["file"] for row in rows}
    names = [name for path in paths if fnmatch.fnmatch(name := path.relative_to(tree).as_posix(), given.only)]
    left = [name for name in names if name not in known]
    for name in left[: given.first]:
        row = built(tree, name, given.include)
        rows.append(row)
        print(f"{row['kind']:8} {row['file']}: {row['told']}", flush=True)
        if given.out:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    counts = Counter(row["kind"] for row in rows)
    kernels = sum(int(row["told"]) for row in rows if row["kind"] == "built")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"{len(rows)} of {len(paths)} sources tried: {kinds}; {kernels} kernels")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ToolError as error:
        sys.exit(f"error: {error}")
