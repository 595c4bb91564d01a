"""Every kernel source under the real DPC++ front end, for SPIR-V, in the form of either build mode; no message allowed.

The front end is that of libsycl's run-time compilation. In `xpu` form (-DESIMD_OPS_AHEAD_OF_TIME) it sees all that icpx's
device pass sees, and must find each kernel from its AHEAD_OF_TIME line alone; in `host` form kernels are asked by name.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
SOURCES = sorted(CSRC.glob("*/*.sycl"))
LINE = re.compile(r'AHEAD_OF_TIME\("\w+/([^"]+)", ')
# The option that runtime.cpp needs too: the wheels carry no libsycl-crt.bc.
OPTION = "-fno-sycl-device-lib=all"
ALLOWED = {f"warning: option '{OPTION}' is deprecated and will be removed in a future release"}
ENTRY_POINT = 15


@pytest.fixture(scope="module")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("front end") / "front_end"
    include, library = Path(sys.prefix, "include"), Path(sys.prefix, "lib")
    subprocess.run(
        ["c++", "-std=c++20", "-O0", "-isystem", include, Path(__file__).with_name("front_end.cpp"), "-o", program,
         f"-L{library}", "-l:libsycl.so.8", f"-Wl,-rpath,{library}"],
        check=True,
    )  # fmt: skip
    return program


def compiled(front_end: Path, source: Path, mode: str, folder: Path) -> tuple[int, list[str], Counter[str]]:
    """Exit code, messages that are not allowed, and how many kernels of each name the SPIR-V has."""
    names = LINE.findall(source.read_text())
    words = [OPTION, "-Wall", "-Wextra", f"-I{CSRC}"]
    words += ["-DESIMD_OPS_AHEAD_OF_TIME"] if mode == "xpu" else ["--", *names]
    env = {**os.environ, "OCL_ICD_FILENAMES": f"{sys.prefix}/lib/libintelocl.so", "SYCL_DUMP_IMAGES": "1"}
    env.pop("SYCL_CACHE_PERSISTENT", None)  # a cached result comes without its messages
    argv = [front_end, source, *words]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=580)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and line not in ALLOWED]
    kernels = Counter(name for image in folder.glob("*.spv") for name in entry_points(image.read_bytes()))
    return done.returncode, said, kernels


def entry_points(spirv: bytes) -> list[str]:
    """The plain names of a SPIR-V module's kernels: each instruction is a word count, an opcode and operands."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    assert words[0] == 0x07230203
    found, at = [], 5
    while at < len(words):
        size, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode == ENTRY_POINT:
            mangled = spirv[4 * (at + 3) : 4 * (at + size)].split(b"\0")[0].decode()
            length, rest = re.fullmatch(r"_Z(\d+)(.*)", mangled).groups()
            found.append(rest[: int(length)].removeprefix("__sycl_kernel_"))
        at += size
    return found


def listed(source: Path) -> Counter[str]:
    return Counter(name.split("<")[0] for name in LINE.findall(source.read_text()))


@pytest.mark.parametrize("mode", ["xpu", "host"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_compiles_without_a_word(front_end: Path, tmp_path: Path, source: Path, mode: str) -> None:
    code, said, kernels = compiled(front_end, source, mode, tmp_path)
    assert (code, said) == (0, [])
    assert kernels == listed(source)


PLANTED = {
    "a warning": ("  const T* x = input + row;", "  const T* x = input + row; int unused;", "unused variable 'unused'"),
    "an error": ("load<kEach>(weight + k)", "load<kEach>(wait + k)", "use of undeclared identifier 'wait'"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_message_is_heard(front_end: Path, tmp_path: Path, what: str) -> None:
    before, after, expected = PLANTED[what]
    text = (CSRC / "norm/norm.sycl").read_text()
    assert before in text
    source = tmp_path / "norm.sycl"
    source.write_text(text.replace(before, after, 1))
    code, said, _ = compiled(front_end, source, "xpu", tmp_path)
    assert (code == 1) == (what == "an error")
    assert any(expected in line for line in said)


def test_a_kernel_that_is_not_listed_is_missed(front_end: Path, tmp_path: Path) -> None:
    text = (CSRC / "norm/norm.sycl").read_text()
    source = tmp_path / "norm.sycl"
    source.write_text(re.sub(r'^AHEAD_OF_TIME\("norm/rms_norm<half, 1>.*\n', "", text, flags=re.MULTILINE))
    code, _, kernels = compiled(front_end, source, "xpu", tmp_path)
    assert code == 0
    assert listed(CSRC / "norm/norm.sycl") - kernels == Counter(["rms_norm"])


def test_the_allowed_option_is_the_one_of_the_runtime() -> None:
    assert f'"{OPTION}"' in (CSRC / "runtime.cpp").read_text()
    assert len(SOURCES) == 8
