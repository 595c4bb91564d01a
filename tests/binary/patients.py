"""The patient built by each compiler at each level, fixed in place, and asked of torch. Takes minutes.

python tests/binary/patients.py FOLDER
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    package = site / "custom_esimd_kernels_vllm"
    if site.exists():
        shutil.rmtree(site)
    shutil.copytree(ROOT / "examples/as_shipped/python/custom_esimd_kernels_vllm", package)
    library = native.library_path()
    from torch.utils import cpp_extension

    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    link = [f"-L{path}" for path in cpp_extension.library_paths()] + ["-ltorch_cpu", "-ltorch", "-lc10"]
    sources = sorted((ROOT / "examples/as_shipped/csrc").glob("*.cc"))
    command = [
        compiler, level, "-std=c++20", "-fPIC", "-w", "-shared", *include, *map(str, sources), *link,
        str(library), f"-Wl,-rpath,{library.parent}", "-o", str(package / "custom_esimd_kernels.so"),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return site


def asked(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), os.environ.get("PYTHONPATH", "")))}
    env.pop("CI", None)
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=False)


def verdicts(site: Path) -> dict[str, str]:
    import json

    schemas = [parse(text) for text in json.loads(asked(site, "-c", ASK).stdout)]
    return {schema.op: rules.judge(schema, table.everything().effect(schema)).verdict.value for schema in schemas}


def main(folder: Path) -> int:
    faults = 0
    for compiler, level in itertools.product(COMPILERS, LEVELS):
        site = build(folder, compiler, level)
        before = verdicts(site)
        code = commands.main(["apply", "--format", "json", str(site)])
        after = verdicts(site)
        examples = str(ROOT / "examples")
        plain, guarded = (asked(site, "-c", SIX, examples, how).returncode for how in ("plain", "guard"))
        wrong = [sum(found == "wrong" for found in rows.values()) for rows in (before, after)]
        good = (code, wrong, plain, guarded) == (0, [37, 0], 2, 0)
        faults += not good
        print(f"{compiler} {level}: {wrong[0]} wrong before, {wrong[1]} after; apply {code}, six lines {plain}, "
              f"with the guard {guarded}", file=sys.stderr)  # fmt: skip
    return faults


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
