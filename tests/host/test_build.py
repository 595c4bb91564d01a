"""Which sources of a tree are built, from where headers come, and what the compiler says to what is not supported."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import pytest

from esimd_ops.host import build, sources
from schema_patch.model import ToolError

INCLUDE = build.HERE / "include"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_kernels_and_registrations_are_sources(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "csrc/a.sycl": "",
            "csrc/ops.cc": "TORCH_LIBRARY(mine, m) {}\nTORCH_LIBRARY_IMPL(theirs, XPU, m) {}",
            "csrc/bind.cpp": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}",
            "csrc/kernel.cpp": "void f(sycl::queue&);",
            "csrc/other.cpp": "// TORCH_LIBRARY(not, m)",
            "tests/t.sycl": "",
            "build/b.sycl": "",
        },
    )
    found = {Path(s.name).name: s for s in sources.sources(root)}
    assert list(found) == ["a.sycl", "bind.cpp", "kernel.cpp", "ops.cc", "other.cpp"]
    assert [name for name, source in found.items() if source.helper] == ["other.cpp"]
    assert (found["ops.cc"].namespaces, found["ops.cc"].defines) == (("mine", "theirs"), ("mine",))
    assert found["bind.cpp"].modules == ("bind",)
    (root / "csrc" / "deep").mkdir()
    (root / "csrc" / "deep" / "bind.cpp").write_text("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}")
    both = [s.modules for s in sources.sources(root) if s.modules]
    assert both == [("csrc_bind",), ("csrc_deep_bind",)]
    assert [s.name for s in sources.sources(root, ["csrc/*.sycl"])] == ["csrc/a.sycl"]
    with pytest.raises(ToolError, match="none of 4 sources matches"):
        sources.sources(root, ["*.cu"])


def test_headers_are_found_where_they_lie(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "include/ops.h": "",
            "csrc/deep/kernels/one.h": '#include "two.h"',
            "csrc/deep/kernels/two.h": "",
            "csrc/a.sycl": '#include "ops.h"\n#include "kernels/one.h"\n#include <vector>',
        },
    )
    folders = sources.include_folders(root, [source.path for source in sources.sources(root)])
    assert folders == (root / "include", root / "csrc" / "deep")


def compile_text(tmp_path: Path, text: str) -> str:
    """What the compiler says to a kernel's text; empty where it compiles."""
    source = tmp_path / "kernel.cpp"
    source.write_text(
        "#include <sycl/sycl.hpp>\n#include <sycl/ext/intel/esimd.hpp>\n#include <sycl/ext/intel/esimd/xmx/dpas.hpp>\n"
        "#include <sycl/ext/intel/experimental/esimd/memory.hpp>\n"
        "using namespace sycl::ext::intel::esimd;\nusing namespace sycl::ext::intel::experimental::esimd;\n"
        f"void f(float* p, simd<float, 16> v, sycl::nd_item<1> item) {{ {text} }}\n"
    )
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{INCLUDE}", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("media_block_load<float, 4, 4>(p, 0, 0);", "media_block_load"),
        ("v.select<16, 2>(0);", "the selection does not fit"),
        ("v = v + simd<float, 8>(1);", "the sizes differ"),
        (
            "lsc_load_2d<float, 4, 4, 1, true, true>(p, 63, 7, 63, 0, 0);",
            "transposed and transformed exclude each other",
        ),
        (
            "lsc_gather<float, 1, lsc_data_size::u16u32h>(p, simd<uint32_t, 16>(0, 4));",
            "lsc_data_size is not supported",
        ),
        ("xmx::dpas<8, 8, float>(simd<float, 128>(0), simd<sycl::half, 128>(1), simd<sycl::half, 128>(1));", "dpas"),
        ("reduce<float>(v, std::minus<>());", "std::plus<> or std::multiplies<>"),
        ("item.get_sub_group().shuffle_down(1, 1);", "shuffle_down"),
        ("simd<long double*, 4> w;", "no element type"),
    ],
)
def test_what_is_not_supported_does_not_compile_and_is_named(tmp_path: Path, text: str, named: str) -> None:
    assert named in compile_text(tmp_path, text)


def test_what_is_supported_compiles_without_torch(tmp_path: Path) -> None:
    assert compile_text(tmp_path, "block_store<float, 16>(p, v * 2.0f);") == ""


def test_a_wheel_holds_the_headers() -> None:
    root = build.HERE.parents[1]
    patterns = msgspec.toml.decode((root / "pyproject.toml").read_bytes())["tool"]["setuptools"]["package-data"][
        "esimd_ops.host"
    ]
    for part in ("include", "runtime"):
        for path in (build.HERE / part).rglob("*"):
            if path.is_file():
                name = path.relative_to(build.HERE).as_posix()
                assert any(fnmatch(name, pattern.replace("**/", "*")) for pattern in patterns), name
