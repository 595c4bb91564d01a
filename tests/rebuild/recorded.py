"""What real tools printed, and stand-ins that print it again.

The compiler's banners are of oneAPI 2025.3.2 and 2026.1.0 as installed; ocloc's answers of compute-runtime releases from
before and after it knew G31, and of one (23.43, of Ubuntu 24.04) that ends with 226 for a device it does not know.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schema_patch.build.toolchain import Devices, Driver, Executable, Facts, Interpreter, Torch

ICPX_2025 = """\
Intel(R) oneAPI DPC++/C++ Compiler 2025.3.2 (2025.3.2.20260112)
Target: x86_64-unknown-linux-gnu
Thread model: posix
InstalledDir: /opt/intel/oneapi/compiler/2025.3/bin/compiler
Configuration file: /opt/intel/oneapi/compiler/2025.3/bin/compiler/../icpx.cfg
"""
ICPX_2026 = """\
Intel(R) oneAPI DPC++/C++ Compiler 2026.1.0 (2026.1.0.20260617)
Target: x86_64-unknown-linux-gnu
Thread model: posix
InstalledDir: /opt/intel/oneapi/compiler/2026.1/bin/compiler
Configuration file: /opt/intel/oneapi/compiler/2026.1/bin/compiler/../icpx.cfg
"""
GXX = """\
g++ (Debian 12.2.0-14+deb12u1) 12.2.0
Copyright (C) 2022 Free Software Foundation, Inc.
"""
OCLOC_IDS = "Matched ids:\n20.1.0\n20.2.0\n"
OCLOC_IDS_BEFORE_G31 = "Matched ids:\n20.1.0\n"


def stand_in(folder: Path, name: str, said: str = "", code: int = 0, script: str = "") -> Path:
    """An executable that prints a text, or runs a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    (folder / f"{name}.said").write_text(said)
    path.write_text(f"#!/bin/sh\n{script}\ncat '{folder / name}.said'\nexit {code}\n")
    path.chmod(0o755)
    return path


def stand_in_python(folder: Path, answers: dict[str, object]) -> Path:
    """An interpreter that answers interpreter.py's questions; an answer that is a text is its last words and an error."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "python"
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\nanswer = json.loads({json.dumps(answers)!r})[sys.argv[3]]\n"
        "if isinstance(answer, str):\n    sys.exit(answer)\nprint(json.dumps(answer))\n"
    )
    path.chmod(0o755)
    return path


def good(purpose: str) -> Facts:
    """A machine on which nothing is wrong for this purpose."""
    xpu = purpose == "xpu"
    runtime = "/env/lib/libsycl.so.8"
    return Facts(
        interpreter=Interpreter(
            "/env/bin/python", "3.11.7", "/env", "/env/bin",
            {"torch": "2.11.0+xpu" if xpu else "2.13.0+cpu", "intel-sycl-rt": "2025.3.2", "intel-opencl-rt": "2025.3.2",
             "pip": "26.3", "setuptools": "84.2.1", "wheel": "0.48.0", "ninja": "1.13.2"},
            ("/env/lib/libintelocl.so", runtime),
        ),
        torch=Torch("2.11.0+xpu", True, ("bmg", "mtl-h", "pvc"), (runtime,)) if xpu else Torch("2.13.0+cpu"),
        torch_error="",
        programs={
            "c++": Executable("/usr/bin/c++", "12.2.0", GXX.splitlines()[0]),
            "ninja": Executable("/env/bin/ninja", "1.13.2", "1.13.2"),
            **({"icpx": Executable("/opt/intel/icpx", "2025.3.2", ICPX_2025.splitlines()[0]),
                "ocloc": Executable("/usr/bin/ocloc", "", "")} if xpu else {}),
        },
        environment={"TORCH_XPU_ARCH_LIST": "bmg", "MAX_JOBS": "4"} if xpu else {"MAX_JOBS": "4"},
        path_runtimes=(),
        devices=Devices(shown={"gpu": 0, "cpu": 1}, as_it_is={"gpu": 0, "cpu": 1}),
        ocloc_ids={"bmg": ("20.1.0", "20.2.0")} if xpu else {},
        cards=("e223",) if xpu else (),
        cpus=8,
        memory=64 * 2**30,
        caches=(),
        driver=Driver("/env", "2025.3.2", "libsycl.so.8", "/usr/bin/clang++-19 19.1.7", "/usr/bin/ocloc (ocloc 26.27)", {}),
    )  # fmt: skip
