"""Public SYCL end-to-end tests as the oracle of the compiler driver: how many compile, and run right on the CPU device.

    python benchmarks/driver_e2e.py SUITE [--only Basic,USM] [--jobs N] [--out FILE.jsonl]

SUITE is a checkout's folder of such tests (intel/llvm: sycl/test-e2e; intel/llvm-test-suite: SYCL). Nothing of them is
kept here. Their own RUN lines are followed, in both of the ways in which they have been written. A test is

    right     compiled and ended with 0 (and FileCheck, where it is asked for, was content)
    wrong     compiled, ran, and did not
    refused   the driver says that it does not do this, and why
    unknown   the source does not compile: what it uses is no longer, or not yet, in this release's headers
    outside   needs what is not here: another device, another compiler, an option for either
    late      was not compiled in time, on this machine and under its load
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FEATURES = {"linux", "cpu", "opencl", "opencl-cpu-rt", "ocloc", "host", "TEMPORARY_DISABLED_NOT"}
FOLDERS = (
    "AtomicRef,Basic,DotProduct,Functor,GroupAlgorithm,GroupLocalMemory,HierPar,InorderQueue,KernelParams,LocalMemory,"
    "Reduction,Regression,SpecConstants,SubGroup,SubGroupMask,USM,UserDefinedReductions"
)
PATIENCE = 300  # seconds
LATE = "did not end"
# What a program expects that has no device code in that place, and that this runtime does not do for g++ either.
OF_RUNTIME = {"invalid_event_exceptions.cpp": "expects an exception of a queue, which is no longer thrown"}
NAMES = Path(__file__).with_name("driver_e2e_names.hpp")
OTHERS = re.compile(r"%\{?(GPU|ACC|BE|HOST|CUDA|HIP)\w*(RUN|CHECK)\w*")


def outcome(path: Path) -> tuple[str, str]:
    text = path.read_text("utf-8", "replace")
    if why := OF_RUNTIME.get(path.name) or outside(text):
        return "outside", why
    lines = runs(text)
    with tempfile.TemporaryDirectory() as work:
        done = 0
        for line in lines:
            command = substituted(line, path, Path(work))
            if command is None:
                continue
            if why := unfit(command):
                return "outside", why
            code, said = shell(command, path.parent)
            compiling = "schema_patch.build.driver" in command
            if code and compiling:
                return judged(said)
            if code:
                return "wrong", f"exit code {code}: {said[-300:]}"
            done += not compiling
    return ("right", "") if done else ("outside", "no line runs on a CPU device")


def outside(text: str) -> str:
    for kind in ("REQUIRES", "UNSUPPORTED", "XFAIL"):
        for words in re.findall(rf"//\s*{kind}:\s*(.*)", text):
            for word in re.split(r"[,\s]+|&&", words.strip()):
                name = word.strip("()!")
                if kind == "REQUIRES" and name and "||" not in words and name not in FEATURES and "aspect-" not in name:
                    return f"requires {name}"
                if kind != "REQUIRES" and name in {"*", "cpu", "linux", "opencl", "TEMPORARY_DISABLED"}:
                    return f"not for {name}, its authors say"
    return ""


def runs(text: str) -> list[str]:
    found: list[str] = []
    joined = False
    for line in re.findall(r"//\s*RUNx?:\s*(.*)", text):
        line = line.strip()
        if joined:
            found[-1] = found[-1][:-1] + " " + line
        else:
            found.append(line)
        joined = line.endswith("\\")
    return found


def substituted(line: str, path: Path, work: Path) -> str | None:
    """A RUN line for the shell; None where it is for another device."""
    if OTHERS.search(line):
        return None
    driver = f"{sys.executable} -m schema_patch.build.driver -include {NAMES} -Wno-everything"
    check = shutil.which("FileCheck") or shutil.which("FileCheck-19") or "/usr/lib/llvm-19/bin/FileCheck"
    line = re.sub(r"%\{run-aux\}|%\{run-unfiltered-devices\}|%\{run\}", "env ONEAPI_DEVICE_SELECTOR=opencl:cpu", line)
    line = re.sub(r"%CPU_RUN(_ON_LINUX)?_PLACEHOLDER", "env ONEAPI_DEVICE_SELECTOR=opencl:cpu", line)
    line = re.sub(r"%CPU_CHECK(_ON_LINUX)?_PLACEHOLDER", f"| {check} {path}", line)
    line = re.sub(r"%\{build\}", f"{driver} -fsycl {path}", line)
    line = re.sub(r"%clangxx\b|%\{clangxx\}|%clang\b|\bdpcpp\b", driver, line)
    for name, value in {
        "sycl_triple": "spir64", "{sycl_triple}": "spir64", "{sycl_target_opts}": "-fsycl-targets=spir64",
        "sycl_options": "-lsycl", "{sycl_options}": "-lsycl", "fPIC": "-fPIC", "shared_lib": "-shared",
        "threads_lib": "-lpthread", "{pthread-lib}": "-lpthread", "cxx_std_option": "-std=", "debug_option": "-g",
        "include_option": "-include", "{sycl_includes}": "", "sycl_include": "", "{mathflags}": "-ffp-model=precise",
        "cxx_std_optionc": "-std=c", "O0": "-O0", "{O0}": "-O0", "{mathflag}": "",
    }.items():  # fmt: skip
        line = re.sub(rf"%{re.escape(name)}(?![A-Za-z_])", value, line)
    line = re.sub(r"%(\{inputs\}|/?S)\b", str(path.parent), line)
    line = re.sub(r"%(?:/s|s)\b", str(path), line)
    line = re.sub(r"%t(?![a-z_])|%\{t\}", str(work / "t"), line)
    return re.sub(r"\bFileCheck\b(?!-)", check, line) if not line.startswith("/usr/lib") else line


def unfit(command: str) -> str:
    if "PI_TRACE" in command:
        return "traces an interface that the runtime no longer has"
    if left := re.search(r"%\{?\w+\}?", command):
        return f"{left[0]} is not known here"
    if foreign := re.search(
        r"-fsycl-targets=(?!spir64\b)\S+|nvptx\S*|amdgcn\S*|-fsycl-device-only|-fsyntax-only|-Xclang", command
    ):
        return f"{foreign[0]} is for another compiler"
    return ""


def shell(command: str, folder: Path) -> tuple[int, str]:
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, capture_output=True, text=True, errors="replace", check=False,
            timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, LATE
    return done.returncode, done.stdout + done.stderr


def judged(said: str) -> tuple[str, str]:
    if said == LATE:
        return "late", ""
    # The front end's and clang's own errors have a line of the source; the driver's, at most its file.
    refusal = re.search(r"icpx: error: (?!.*:\d+:\d+: )(.*)", said)
    if refusal:
        return "refused", refusal[1][:300]
    error = re.search(r"error: .*", said)
    return "unknown", error[0][:200] if error else said[-200:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--only", default=FOLDERS)
    parser.add_argument("--match", default="", help="a pattern that a test's path must have")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--out", type=Path, help="results, a line each; what is in it is not run again")
    words = parser.parse_args()
    suite = words.suite.resolve()
    folders = words.only.split(",")
    tests = sorted(path for path in suite.rglob("*.cpp") if path.relative_to(suite).parts[0] in folders
                   and "RUN:" in path.read_text("utf-8", "replace") and re.search(words.match, str(path)))  # fmt: skip
    tests.sort(key=lambda path: folders.index(path.relative_to(suite).parts[0]))
    if not tests:
        print(f"{suite}: no tests in {', '.join(folders)}", file=sys.stderr)
        return 2
    done = words.out.read_text() if words.out and words.out.exists() else ""
    known = {row["test"]: row["kind"] for row in map(json.loads, done.splitlines())}
    counts = collections.Counter(known.values())
    tests = [path for path in tests if str(path.relative_to(suite)) not in known][: words.limit or None]
    os.environ["SYCL_CACHE_PERSISTENT"] = "0"
    with ThreadPoolExecutor(words.jobs) as pool:
        for path, (kind, why) in zip(tests, pool.map(outcome, tests), strict=True):
            counts[kind] += 1
            name = str(path.relative_to(suite))
            print(f"{kind:8} {name}{f': {why.splitlines()[0]}' if why else ''}", flush=True)
            if words.out:
                with words.out.open("a") as file:
                    file.write(json.dumps({"test": name, "kind": kind, "why": why}) + "\n")
    print(f"{sum(counts.values())} tests: {', '.join(f'{count} {kind}' for kind, count in sorted(counts.items()))}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
