"""Compiles and runs Intel's end-to-end tests of ESIMD on the host's headers: which pass, which fail, which are outside.

    python benchmarks/esimd_e2e.py PATH [--only PATTERN] [--jobs N] [--compiler clang++]

PATH is a folder of tests: SYCL/ESIMD of a checkout of intel/llvm-test-suite, or sycl/test-e2e/ESIMD of one of
intel/llvm. A test is outside where it, or a header of the tests that it includes, uses what docs/esimd-host.md names as
outside; the first reason is printed. Every other test must compile and exit with 0. Exit code 1 where one does not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HOST = Path(__file__).resolve().parents[1] / "esimd_ops" / "host"
FLAGS = ["-std=c++20", "-O1", "-w", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing"]
COMPILE_S, RUN_S = 400, 120

# What the host does not stand in for, by what a source says.
OUTSIDE = {
    "accessors and buffers": r"\b(?:get_access|accessor|buffer)\b|\b_stateless\b",
    "specialization constants": r"specialization_constant|spec_constant|specialization_id|set_spec_const",
    "inline assembly": r"\basm\b|__asm__",
    "raw messages": r"\braw_sends?\b|\braw_send",
    "media blocks and images": r"media_block|sampler\b|sycl::image",
    "invoke_simd": r"invoke_simd",
    "RGBA messages": r"(?:gather|scatter)_rgba|rgba_channel",
    "function pointers of the device": r"indirectly_callable",
    "names inside the compiler's headers": r"\bdetail::dword_type\b|\bget_test_proxy\b",
    "names that the compiler has dropped": (
        r"CL/sycl\.hpp|\blsc_(?:load|store|prefetch)2d\b|\bargument_type::|\bget_cl_code\b|\b(?:sin|cos)_emu\b"
    ),
    "registers that outlive a kernel's functions": r"ESIMD_REGISTER|ESIMD_PRIVATE",
    "dpas of 8 lanes, as older devices have": r"\bdpasw\b|\bExecSize\b",
    "functions that no tree uses": (
        r"\bdp4a\b|\bimul\b|slm_allocator|this_sub_group|experimental::printf|get_hw_thread_id|if_architecture_is"
    ),
    "kernel bundles": r"kernel_bundle|kernel_id",
    "not of this version of the tests' own headers": r"tested_types::all\b",
    "tests of the compiler, not of what it makes": r"^//\s*RUN:.*(?:sycl-post-link|FileCheck|emit-llvm|\.asm)",
}

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Result:
    test: str
    kind: str  # pass | outside | compile | run
    words: str = ""


def text_of(source: Path) -> str:
    """The source, the tests' other sources that its RUN lines name, and their own headers, without other comments."""
    run = "\n".join(re.findall(r"^//\s*RUN:.*$", source.read_text("utf-8", "replace"), re.MULTILINE))
    beside = [source.parent / name for name in re.findall(r"%S/(\S+\.cpp)", run)]
    pending = [source, *(path for path in beside if path.is_file())]
    seen, parts = set(pending), [run]
    while pending:
        path = pending.pop()
        text = path.read_text("utf-8", "replace")
        parts.append(_COMMENT.sub("", text))
        for name in _INCLUDE.findall(text):
            found = next((f / name for f in (path.parent, *path.parents[:3]) if (f / name).is_file()), None)
            if found and found.resolve() not in seen and found.name != "esimd_test_utils.hpp":
                seen.add(found.resolve())
                pending.append(found)
    return "\n".join(parts)


def commands(source: Path, folder: Path, objects: list[Path], compiler: str) -> list[list[str]]:
    """What the test's RUN lines ask for: compiler calls, and runs of what they made."""
    asked = []
    lines = re.sub(r"\\\n\s*//(?:\s*RUNx?:)?", " ", source.read_text("utf-8", "replace"))
    for line in re.findall(r"^//\s*RUN:\s*(.*)$", lines, re.MULTILINE):
        out = str(folder / "test")
        line = line.replace("%S", str(source.parent)).replace("%s", str(source)).replace("%T", str(folder))
        words = re.sub(r"%\{[^}]*\}", "", line).replace("%t", out).split()
        if any(word.endswith(("%clangxx", "clang++")) for word in words) or "-fsycl" in words:
            kept = [w for w in words if w.endswith((".cpp", ".o", ".out", ".exe")) or w[:2] in ("-I", "-D", "-o", "-c")]
            if "-fsycl" in words or "%clangxx" in words:
                target = [] if "-c" in kept else [*map(str, objects), "-lpthread", "-ldl"]
                include = ["-I", str(HOST / "include"), *(f"-I{p}" for p in source.parents[:3])]
                asked.append([compiler, *FLAGS, *include, *kept, *target])
        elif any(word.startswith(out) for word in words):
            start = next(i for i, word in enumerate(words) if word.startswith(out))
            asked.append([w for w in words[start:] if not w.startswith("%GPU_CHECK")])
    return asked


def judge(source: Path, root: Path, objects: list[Path], compiler: str) -> Result:
    name = str(source.relative_to(root))
    text = text_of(source)
    for reason, pattern in OUTSIDE.items():
        if re.search(pattern, text, re.MULTILINE):
            return Result(name, "outside", reason)
    with tempfile.TemporaryDirectory() as folder:
        asked = commands(source, Path(folder), objects, compiler)
        runs = [command for command in asked if command[0] != compiler]
        if not runs:
            return Result(name, "outside", "disabled: no RUN line")
        missing = [w for c in runs for w in c[1:] if w.startswith(str(root)) and not Path(w).exists()]
        if missing and not any("golden" in word for word in missing):
            return Result(name, "outside", "its data is not in the folder")
        for command in asked:
            compiles = command[0] == compiler
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=COMPILE_S if compiles else RUN_S,
                    check=False,
                    cwd=folder,
                )
            except (subprocess.TimeoutExpired, OSError) as error:
                return Result(name, "compile" if compiles else "run", str(error)[-200:])
            if done.returncode:
                lines = [x for x in done.stderr.splitlines() if "error" in x] if compiles else []
                words = "\n".join(lines[:3]) or (done.stdout + done.stderr)[-300:]
                return Result(name, "compile" if compiles else "run", f"{done.returncode}: {words}")
    return Result(name, "pass")


def runtime(folder: Path, compiler: str) -> list[Path]:
    """The runtime's objects, without what needs torch."""
    made = []
    for source in sorted((HOST / "runtime").glob("*.cpp")):
        if source.stem in ("allocator", "instrumented", "interface"):
            continue
        made.append(folder / f"{source.stem}.o")
        subprocess.run([compiler, *FLAGS, f"-I{HOST / 'include'}", "-c", str(source), "-o", str(made[-1])], check=True)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=lambda text: Path(text).resolve())
    parser.add_argument("--only", default="*", help="only tests whose path matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--words", action="store_true", help="what the compiler or the test said")
    given = parser.parse_args()
    tests = sorted(p for p in given.path.rglob("*.cpp") if "RUN:" in p.read_text("utf-8", "replace"))
    tests = [p for p in tests if fnmatch.fnmatch(str(p.relative_to(given.path)), given.only)]
    if not tests:
        print(f"{given.path}: expected tests with RUN lines, found none that match {given.only}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        objects = runtime(Path(folder), given.compiler)
        results = []
        for result in pool.map(lambda p: judge(p, given.path, objects, given.compiler), tests):
            results.append(result)
            words = f"  {result.words}" if result.kind == "outside" or (given.words and result.words) else ""
            print(f"{result.kind:8} {result.test}{words}", flush=True)
    counts = Counter(result.kind for result in results)
    print(
        f"\n{len(tests)} tests: {counts['pass']} pass, {counts['compile']} do not compile, {counts['run']} fail, ",
        end="",
    )
    print(f"{counts['outside']} outside:")
    for reason, count in Counter(r.words for r in results if r.kind == "outside").most_common():
        print(f"  {count:4} {reason}")
    return 1 if counts["compile"] + counts["run"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
