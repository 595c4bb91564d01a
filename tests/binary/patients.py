"""The patient built by each compiler at each level, fixed in place, and asked of torch. Takes half an hour.

    python tests/binary/patients.py FOLDER

What FOLDER holds of an earlier run is not compiled again.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from torch.utils import cpp_extension

from esimd_ops import native
from schema_patch.commands import main as commands
from schema_patch.schemas import rules, table
from schema_patch.schemas.grammar import parse

ROOT = Path(__file__).resolve().parents[2]
COMPILERS, LEVELS = ("g++", "clang++"), ("-O0", "-O2", "-O3", "-Os")
ASK = """
import json, sys, torch
import custom_esimd_kernels_vllm
print(json.dumps([str(s) for s in torch._C._jit_get_all_schemas() if str(s).startswith(("custom_esimd", "esimd_topk"))]))
"""
SIX = """
import sys; sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "guard":
    from esimd_ops import guard
    import torch
    guard.enable()
import six_lines
sys.exit(six_lines.main())
"""


def build(folder: Path, compiler: str, level: str) -> Path:
    """A folder that holds the patient as installed."""
    site = folder / f"{compiler}{level}"
    package, library = site / "custom_esimd_kernels_vllm", native.library_path()
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "examples/as_shipped/python/custom_esimd_kernels_vllm", package)
    link = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch_cpu", "-ltorch", "-lc10"]
    target = package / "custom_esimd_kernels.so"
    subprocess.run(
        [compiler, "-shared", *objects(folder / f"{compiler}{level}-objects", compiler, level), *link, library,
         f"-Wl,-rpath,{library.parent}", "-o", target], check=True,
    )  # fmt: skip
    return site


def objects(folder: Path, compiler: str, level: str) -> list[Path]:
    """The patient's sources compiled, their common header once."""
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    command = [compiler, level, "-g0", "-std=c++20", "-fPIC", "-w", *include]
    shutil.copytree(ROOT / "examples/as_shipped/csrc", folder, dirs_exist_ok=True)
    header = folder / "kernel_ops.h"
    ready = header.with_suffix(".h.gch" if compiler == "g++" else ".h.pch")
    made = [path.with_suffix(".o") for path in sorted(folder.glob("*.cc"))]
    if not all(path.exists() for path in made):
        _made(ready, [*command, "-x", "c++-header", header])
    use = [] if compiler == "g++" else ["-include-pch", ready]
    for path in made:
        _made(path, [*command, *use, "-c", path.with_suffix(".cc")])
    return made


def _made(target: Path, command: list[str | Path]) -> None:
    if not target.exists():
        new = target.with_suffix(".new")  # whole or not there
        subprocess.run([*command, "-o", new], check=True)
        new.rename(target)


def asked(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), os.environ.get("PYTHONPATH", "")))}
    env.pop("CI", None)
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)


def verdicts(site: Path) -> dict[str, str]:
    schemas = [parse(text) for text in json.loads(asked(site, "-c", ASK).stdout)]
    return {schema.op: rules.judge(schema, table.everything().effect(schema)).verdict.value for schema in schemas}


def healed(site: Path) -> list[str]:
    """What is not as it should be before and after the library is changed in place."""
    library = site / "custom_esimd_kernels_vllm/custom_esimd_kernels.so"
    examples, bytes_ = str(ROOT / "examples"), library.read_bytes()
    before, silent = verdicts(site), asked(site, "-c", SIX, examples, "plain").returncode
    started = os.times()
    done = asked(site, "-m", "schema_patch", "apply", str(site))
    ended, applied = os.times(), done.returncode
    if applied:
        print(done.stderr, file=sys.stderr)
    after = verdicts(site)
    refused, guarded = (asked(site, "-c", SIX, examples, how).returncode for how in ("plain", "guard"))
    reverted = commands.main(["revert", str(site)])
    wrong = [sum(found == "wrong" for found in rows.values()) for rows in (before, after)]
    found = {
        "operators": (len(before), len(after)), "wrong before and after": tuple(wrong), "six lines before": silent,
        "apply": applied, "six lines after": refused, "with the guard": guarded,
        "revert": (reverted, library.read_bytes() == bytes_),
    }  # fmt: skip
    told = " ".join(f"{what} {n};" for what, n in found.items())
    wall = ended.elapsed - started.elapsed
    core = ended.children_user + ended.children_system - started.children_user - started.children_system
    print(f"{site.name}: {len(bytes_):,} bytes, apply {wall:.1f} s, {core:.1f} s of a core; {told}", flush=True)
    return [what for what, wanted in WANTED.items() if found[what] != wanted]


WANTED = {
    "operators": (47, 47), "wrong before and after": (37, 0), "six lines before": 1, "apply": 0, "six lines after": 2,
    "with the guard": 0, "revert": (0, True),
}  # fmt: skip


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    faults = {}
    for compiler, level in itertools.product(COMPILERS, LEVELS):
        site = build(folder, compiler, level)
        faults[site.name] = healed(site)
    left = {name: found for name, found in faults.items() if found}
    print(f"{len(faults) - len(left)} of {len(faults)} patients as they should be", left or "")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
