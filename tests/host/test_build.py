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
    joined = "TORCH_LIBRARY_EXPAND(\n    CONCAT(TORCH_EXTENSION_NAME, _cache), m) {}\n"
    (root / "csrc" / "joined.cpp").write_text(joined)
    assert [s.defines for s in sources.sources(root) if s.name == "csrc/joined.cpp"] == [("joined_cache",)]
    assert [s.name for s in sources.sources(root, ["csrc/*.sycl"])] == ["csrc/a.sycl"]
    with pytest.raises(ToolError, match="none of 6 sources matches"):
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


@pytest.mark.parametrize(
    ("text", "widths", "unknown"),
    [
        ("[[sycl::reqd_sub_group_size(32)]]", [32], []),
        ("#define WARP_SIZE 32\n[[intel::reqd_sub_group_size( WARP_SIZE )]]", [32], []),
        ("static constexpr int32_t WARP_SIZE = 32u;\n[[sycl::reqd_sub_group_size(WARP_SIZE)]]", [32], []),
        ("constexpr int A = 8;\nstatic constexpr auto B = A;\nproperties{sub_group_size<B>}", [8], []),
        ("template <int Width = 16> struct K { [[sycl::reqd_sub_group_size(Width)]] void f(); };", [16], []),
        ("struct A { static const int S = 16; };\nstruct B { static const int S = 32; };\n"
         "[[sycl::reqd_sub_group_size(S)]]", [16, 32], []),
        ("template <int N> struct K { [[sycl::reqd_sub_group_size(N)]] void f(); };", [], ["N"]),
        ("sub_group_size<cute::intel::sg_size>", [], ["cute::intel::sg_size"]),
        ("int n = device.get_info<max_sub_group_size>(); int m = get_sub_group_size(4); get_sub_group_size();", [], []),
    ],
)  # fmt: skip
def test_widths_of_sub_groups(text: str, widths: list[int], unknown: list[str]) -> None:
    assert sources.sub_groups(text) == (widths, unknown)


def test_widths_are_those_of_the_headers_too(tmp_path: Path) -> None:
    headers = {"include/k.h": "[[sycl::reqd_sub_group_size(W)]]", "include/w.h": "constexpr int W = 8;"}
    for include in ('#include "k.h"', "#include <k.h>"):
        root = tree(tmp_path, {**headers, "csrc/a.cpp": f'{include}\n#include "w.h"\nsycl::queue q;'})
        text = sources.read_with_headers(root / "csrc/a.cpp", [root / "include"])
        assert sources.sub_groups(text) == ([8], [])


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
        ("sycl::buffer<float, 1> made(sycl::range<1>(4));", "buffer"),
        ("v = exp(v, saturation_on);", "exp does not saturate"),
        ("simd<long double*, 4> w;", "no element type"),
    ],
)
def test_what_is_not_supported_does_not_compile_and_is_named(tmp_path: Path, text: str, named: str) -> None:
    assert named in compile_text(tmp_path, text)


SPELLINGS = """
  v.copy_from(p); v.copy_to(p, element_aligned); simd<float, 16> w(p, vector_aligned); auto d = v.data();
  sycl::id<1> i(3); p[i] = 1.f; int n = i; sycl::range<1> r = sycl::range<1>(4) * sycl::range<1>(2) + 1;
  auto c = v.bit_cast_view<float, 4, 4>().column(1); auto m = v.bit_cast_view<float, 4, 4>().row(2);
  simd<uint32_t, 16> o(0u, 4u); simd<uint16_t, 16> words(1); simd_mask<16> on(1); uint32_t* q = o.storage();
  auto b = block_load<float, 16>(p + o[1]); v = v * v.select<1, 1>(0); v = max<float, 16, float>(v, w);
  { using namespace sycl; long whole = abs(-3L) + abs(-3); float part = abs(-3.f); v = abs(v); }
  v = exp2<float, 16, float>(v.select<16, 1>(0)); v = rnde<float, 16>(v * 2.0f); float s = v[0], t = v.select<1, 1>(3);
  auto g = gather<uint32_t, 16, 1, uint32_t>(q, o, words); v = gather<float, 16>(p, o, on, v); v = gather(p, o);
  v = gather<float, 16>(p, o.select<16, 1>(0), on, properties{alignment<4>}); auto e = gather<float, 32, 2>(p, o);
  scatter<float, 16>(p, o, v.select<16, 1>(0)); scatter<float, 16, 1, uint32_t>(p, o, v, on); scatter(p, o, v, on);
  v = lsc_gather<float, 1, lsc_data_size::default_size, cache_hint::none, cache_hint::none, 16>(p, 0u, on);
  lsc_prefetch<float, 16, lsc_data_size::default_size, cache_hint::cached, cache_hint::cached>(p);
  lsc_fence(); fence<memory_kind::local, fence_flush_op::none, fence_scope::group>(); fence<fence_mask::sw_barrier>();
  sycl::half h = sycl::half(2) * 3 + sycl::half(1) / 2; float f = h * 2.5f; on |= v > w; on = !on & (v == 0.0f) | ~on;
  simd_mask<8> part = on.select<8, 2>(1); on.select<8, 2>(0) = part; v.merge(w, on); auto x = merge(v, w, on);
  sycl::vec<float, 4> four(1, 2, 3, 4); four += four * 2.0f; sycl::queue queue; queue.wait();
  float* shared = sycl::malloc_shared<float>(16, queue); sycl::free(shared, queue); std::cout << v;
  struct Theirs { operator float() const { return 1; } }; float like = sycl::exp(Theirs()); auto one = exp(simd<float, 1>(2));
  int (&own)[4] = *sycl::ext::oneapi::group_local_memory_for_overwrite<int[4]>(item.get_group()); own[3] = 1;
"""


@pytest.mark.parametrize("text", ["block_store<float, 16>(p, v * 2.0f);", SPELLINGS], ids=["little", "everyday"])
def test_what_is_supported_compiles_without_torch(tmp_path: Path, text: str) -> None:
    assert compile_text(tmp_path, text) == ""


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
