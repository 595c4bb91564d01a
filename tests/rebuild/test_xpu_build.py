"""setup.py in xpu mode, up to the linked library: the commands that ninja is given, asserted as data.

The compilers are stand-ins that record their arguments; what links is the real linker, against the real SYCL runtime of
intel-sycl-rt and stubs of the two libraries that a torch without XPU lacks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from schema_patch.elf import reader

from .recorded import GXX, ICPX_2025

ROOT = Path(__file__).resolve().parents[2]
DEVICE_SIDE = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/*/*.sycl"))
HOST_SIDE = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("csrc/**/*.cpp"))

# Records its arguments. Asked for an object, it gives one that defines nothing, but for runtime.cpp, the one file of the
# host side that knows SYCL (or a copy of an earlier $RUNTIME_O: it takes its time); asked to link, it calls the real linker.
COMPILER = """\
#!{python}
import json, os, shutil, subprocess, sys
words = sys.argv[1:]
with open({record!r}, "a") as record:
    record.write(json.dumps(words) + "\\n")
out = words[words.index("-o") + 1] if "-o" in words else ""
if "--version" in words:
    sys.stdout.write({said!r})
elif ("-c" in words and not out.endswith("/runtime.o")) or "-fsycl-link" in words:
    sys.exit(subprocess.run(["/usr/bin/c++", "-c", "-x", "c++", os.devnull, "-fPIC", "-o", out]).returncode)
elif out.endswith("/runtime.o") and "RUNTIME_O" in os.environ:
    shutil.copy(os.environ["RUNTIME_O"], out)
else:
    sys.exit(subprocess.run(["/usr/bin/c++", *words]).returncode)
"""
# What runtime.cpp calls of c10_xpu, so that the linker finds it where a torch with XPU has it.
XPU_SYMBOLS = {"c10_xpu": "_ZN3c103xpu19getCurrentXPUStreamEa", "torch_xpu": "esimd_ops_test_torch_xpu"}


def compiler(path: Path, said: str) -> Path:
    path.write_text(COMPILER.format(python=sys.executable, record=str(path.with_suffix(".record")), said=said))
    path.chmod(0o755)
    return path


def recorded(tools: Path, name: str) -> list[list[str]]:
    return [json.loads(line) for line in (tools / f"{name}.record").read_text().splitlines()]


def machine(base: Path) -> dict[str, str]:
    """The environment of a machine with an icpx, a C++ compiler, and the libraries of a torch with XPU."""
    tools, stubs = base / "tools", base / "stubs"
    tools.mkdir()
    stubs.mkdir()
    compiler(tools / "icpx", ICPX_2025)
    compiler(tools / "c++", GXX)
    for name, symbol in XPU_SYMBOLS.items():
        source = stubs / f"{name}.c"
        source.write_text(f"void {symbol}(void) {{}}\n")
        out = stubs / f"lib{name}.so"
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", out, f"-Wl,-soname,{out.name}"], check=True)
    # A header that only a build of torch with XPU generates.
    generated = stubs / "include/c10/xpu/impl/xpu_cmake_macros.h"
    generated.parent.mkdir(parents=True)
    generated.write_text("#pragma once\n#define C10_XPU_BUILD_SHARED_LIBS\n")
    left = {name: value for name, value in os.environ.items() if name != "TORCH_XPU_ARCH_LIST"}
    return {
        **left, "PATH": f"{tools}:{os.environ['PATH']}", "CXX": str(tools / "c++"), "LIBRARY_PATH": str(stubs),
        "LDCXXSHARED": f"{tools}/c++ -shared", "MAX_JOBS": "2",
        "CPLUS_INCLUDE_PATH": str(stubs / "include"),
    }  # fmt: skip


def build(base: Path, sycl_home: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    tree = base / "tree"
    shutil.copytree(ROOT / "csrc", tree / "csrc")
    for folder in ("schema_patch", "esimd_ops/ops"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.py", tree)
    child = Path(__file__).with_name("xpu_child.py")
    argv = [sys.executable, child, tree / "setup.py", sycl_home]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=580)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("xpu")
    done = build(base, Path(sys.prefix), machine(base))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.findall(r"/tree/csrc/\S+ (?:warning|error):.*", done.stdout + done.stderr)
    return base


@pytest.fixture(scope="module")
def runtime_object(built: Path) -> Path:
    (path,) = (built / "tree/build").rglob("runtime.o")
    return path


def sources(commands: list[list[str]]) -> list[str]:
    found = [word for words in commands if "-c" in words for word in words if word.endswith((".cpp", ".sycl"))]
    return sorted(path.partition("/tree/")[2] for path in found)


def test_each_source_goes_to_its_compiler(built: Path) -> None:
    assert sources(recorded(built / "tools", "icpx")) == DEVICE_SIDE
    expected = [path for path in HOST_SIDE if path != "csrc/kernel_sources.cpp"]
    assert sources(recorded(built / "tools", "c++")) == ["build/registration.cpp", *expected]


def test_how_a_kernel_source_is_compiled(built: Path) -> None:
    tree = built / "tree"
    commands = [words for words in recorded(built / "tools", "icpx") if "-c" in words]
    assert len(commands) == len(DEVICE_SIDE)
    for words in commands:
        (source,) = (word for word in words if word.endswith(".sycl"))
        assert words[words.index(source) - 2 : words.index(source)] == ["-x", "c++"]
        assert words[words.index("-o") + 1].endswith(source.removeprefix(f"{tree}/") + ".o")
        assert [word for word in words if word.startswith("-fsycl-targets")] == ["-fsycl-targets=spir64_gen,spir64"]
        assert words.count("-fsycl") == 1
        assert {"-DESIMD_OPS_AHEAD_OF_TIME", f"-I{tree}/csrc", "-std=c++20", "-sycl-std=2020"} < set(words)
        assert {f"-I{sys.prefix}/include", f"-I{sys.prefix}/include/sycl"} < set(words)
        assert [word for word in words if word.startswith("-O")][-1] == "-O2"
        assert f"-fsycl-host-compiler={built}/tools/c++" in words
        (host,) = (word for word in words if word.startswith("-fsycl-host-compiler-options="))
        assert {"-DESIMD_OPS_AHEAD_OF_TIME", "-O1", "-fPIC", "-std=c++20"} < set(shlex.split(host.partition("=")[2]))
        assert f"-ffile-prefix-map={tree}=." in words


def test_the_device_link_compiles_for_the_card_and_keeps_spirv(built: Path) -> None:
    (words,) = (words for words in recorded(built / "tools", "icpx") if "-fsycl-link" in words)
    objects = [word for word in words if word.endswith(".o") and not word.endswith("/sycl_dlink.o")]
    assert (
        len(objects) == len(set(objects)) == len(DEVICE_SIDE) + len(HOST_SIDE)
    )  # registration.cpp is made, kernel_sources.cpp not for a card
    assert words[-2:] == ["-Xs", "-device bmg"]
    assert "-fsycl-targets=spir64_gen,spir64" in words
    assert "--offload-compress" in words


def test_the_library_needs_the_one_runtime(built: Path) -> None:
    (library,) = (built / "tree/build").rglob("_C*.so")
    facts = reader.read(library)
    assert [name for name in facts.needed if "sycl" in name] == ["libsycl.so.8"]
    assert not [
        name for name in facts.needed if "xpu" in name
    ]  # the queue comes through torch's device-neutral interface
    assert facts.runpath == "$ORIGIN/../torch/lib:$ORIGIN/../../.."
    assert facts.soname == library.name
    (link,) = (words for words in recorded(built / "tools", "c++") if "-shared" in words)
    assert {"-lsycl", "-lc10_xpu", "-ltorch_xpu", f"-L{sys.prefix}/lib"} < set(link)


def test_another_runtime_is_refused(runtime_object: Path, tmp_path: Path) -> None:
    """The planted defect: a compiler of 2026 brings libsycl.so.9, which links as well and cannot be loaded."""
    home = tmp_path / "oneapi-2026"
    (home / "lib").mkdir(parents=True)
    environment = {**machine(tmp_path), "RUNTIME_O": str(runtime_object)}
    source = home / "all.c"
    undefined = subprocess.run(
        ["nm", "--undefined-only", "-P", runtime_object],
        capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    names = {line.split()[0] for line in undefined if "sycl" in line}
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    argv = ["cc", "-w", "-shared", "-fPIC", source, "-o", home / "lib/libsycl.so", "-Wl,-soname,libsycl.so.9"]
    subprocess.run(argv, check=True)
    (home / "include").symlink_to(Path(sys.prefix, "include"))
    done = build(tmp_path, home, environment)
    assert done.returncode == 1
    assert "expected to need libsycl.so.8 and no other SYCL runtime, found libsycl.so.9" in done.stderr
    assert not list((tmp_path / "tree/build").rglob("_C*.so"))


@pytest.mark.parametrize(("given", "expected"), [("bmg-g31", "-device bmg-g31"), ("", None)])
def test_the_arch_list_is_the_users(runtime_object: Path, tmp_path: Path, given: str, expected: str | None) -> None:
    environment = {**machine(tmp_path), "TORCH_XPU_ARCH_LIST": given, "RUNTIME_O": str(runtime_object)}
    done = build(tmp_path, Path(sys.prefix), environment)
    assert done.returncode == 0, done.stderr
    (words,) = (words for words in recorded(tmp_path / "tools", "icpx") if "-fsycl-link" in words)
    assert ("-Xs" in words) == (expected is not None)
    assert expected is None or words[-1] == expected
    assert f"-fsycl-targets=spir64{'_gen,spir64' if expected else ''}" in words
