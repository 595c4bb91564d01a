"""Upstream's own fixes as a benchmark: is the commit before told for the right reason, and the commit after not?

    python benchmarks/upstream_bugs.py llm-scaler=CLONE vllm-xpu-kernels=CLONE [--only 356,437] [--work DIR]

A CLONE is a git repository with history, bare or not; pull requests that were not merged must have been fetched into
it. Trees are unpacked and built, half a minute each, in a temporary folder, or in --work to be used again. The fixes
are in upstream_bugs.toml. Exit code 1 where a fix that was found is found no more.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
SCHEDULES = {"races": "ascending;descending"}


class Tree(msgspec.Struct, frozen=True):
    """One repository of the table."""

    repository: str
    folder: str
    namespace: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One fix; the keys are explained in the table."""

    tree: str
    id: str
    after: str
    date: str
    why: str
    tool: str
    branch: str = ""
    before: str = ""
    build: tuple[str, ...] = ()
    operator: str = ""
    shapes: str = ""
    code: str = ""
    words: str = ""
    why_not: str = ""


class Table(msgspec.Struct, frozen=True):
    """upstream_bugs.toml."""

    trees: dict[str, Tree]
    fix: tuple[Fix, ...]


def unpack(clone: str, commit: str, folder: str, out: Path) -> None:
    """The folder of a commit, as files."""
    packed = subprocess.run(["git", "-C", clone, "archive", f"{commit}:{folder}"], capture_output=True, check=False)
    if packed.returncode:
        raise SystemExit(f"{clone}: {packed.stderr.decode().strip()}: fetch the commit, see `branch` in the table")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(out, filter="data")


def run(words: list[str], path: Path | None = None) -> Any:
    """A command of the kit, its report."""
    paths = [str(path), os.environ.get("PYTHONPATH", "")] if path else [os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, env=environment, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def findings(fix: Fix, tree: Tree, source: Path, out: Path) -> list[str]:
    """What the fix's command says of one commit that matches: place and words."""
    if fix.tool == "audit":
        report = run(["schema_patch", "audit", str(source), "--format", "json"])
    else:
        only = [word for pattern in fix.build for word in ("--only", pattern)]
        checks = ["--checks"] if fix.tool == "races" else []
        build = ["esimd_ops", "host-build", str(source), "-o", str(out), *only, *checks]
        if not (out / f"{tree.namespace}.py").exists():
            done = subprocess.run([sys.executable, "-m", *build], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{' '.join(build)}: {done.stderr.strip()[-2000:]}")
        words = ["esimd_ops", fix.tool, "--namespace", tree.namespace, "--ops", fix.operator, "--format", "json"]
        words += ["--shapes", fix.shapes or "all"]
        words += ["--schedules", SCHEDULES["races"]] if fix.tool == "races" else ["--repeat", "2"]
        report = run(words, out)
    matching = []
    for found in report["findings"]:
        place = f"{Path(found['path']).name}:{found['line']}" if found.get("line") else ""
        told = f"{found['op']}: {found['message']}"
        if found["code"] == fix.code and found["op"] == fix.operator and re.search(fix.words, told):
            matching.append(f"{place} {found['message']}".strip())
    return matching


def judge(fix: Fix, tree: Tree, clone: str, work: Path) -> tuple[str, str]:
    """found, missed or still told after; and the first finding before."""
    if not fix.tool:
        return "missed", fix.why_not
    seen = {}
    for name, commit in (("before", fix.before or f"{fix.after}^"), ("after", fix.after)):
        source, out = work / fix.id / name / "tree", work / fix.id / name / "built"
        if not source.exists():
            unpack(clone, commit, tree.folder, source)
        seen[name] = findings(fix, tree, source, out)
    if not seen["before"]:
        return "missed", "nothing told of the commit before"
    return ("still told after", seen["after"][0]) if seen["after"] else ("found", seen["before"][0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", metavar="TREE=CLONE")
    parser.add_argument("--only", default="")
    parser.add_argument("--work", metavar="DIR")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    table = msgspec.toml.decode((HERE / "upstream_bugs.toml").read_bytes(), type=Table)
    clones = dict(word.split("=", 1) for word in given.clones)
    fixes = [f for f in table.fix if f.tree in clones and (not given.only or f.id in given.only.split(","))]
    with tempfile.TemporaryDirectory() as folder:
        return report(fixes, table, clones, Path(given.work or folder).resolve(), markdown=given.markdown)


def report(fixes: list[Fix], table: Table, clones: dict[str, str], work: Path, *, markdown: bool) -> int:
    """A line a fix, as it is judged."""
    lost = found = 0
    for fix in fixes:
        verdict, words = judge(fix, table.trees[fix.tree], clones[fix.tree], work)
        found += verdict == "found"
        lost += bool(fix.tool) and verdict != "found"
        if markdown:
            print(
                f"| {fix.tree} {fix.id} | {fix.date} | {fix.why} | {fix.tool or '–'} | {verdict} | {words[:150]} |",
                flush=True,
            )
        else:
            print(f"{fix.tree} {fix.id}: {verdict}: {fix.why}\n    {words[:200]}", flush=True)
    print(f"{found} of {len(fixes)} found", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
