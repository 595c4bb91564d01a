"""Which TORCH_LIBRARY block registers an operator: torch itself is the oracle."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from schema_patch.elf import reader

torch = pytest.importorskip("torch")
SOURCE = """
#include <torch/library.h>
TORCH_LIBRARY(space_one, m) { m.def("alpha(Tensor x) -> Tensor"); m.def("both(Tensor x) -> Tensor"); }
TORCH_LIBRARY(space_two, m) { m.def("beta(Tensor(a!) x) -> ()"); m.def("both(Tensor x, int n) -> Tensor"); }
TORCH_LIBRARY_FRAGMENT(space_two, m) { m.def("gamma(Tensor x, float eps=1e-05) -> Tensor"); }
TORCH_LIBRARY_IMPL(space_one, CPU, m) {}
"""


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torch.utils import cpp_extension

    folder = tmp_path_factory.mktemp("spaces")
    (folder / "x.cpp").write_text(SOURCE)
    include = [f"-I{path}" for path in cpp_extension.include_paths()]
    link = [*(f"-L{path}" for path in cpp_extension.library_paths()), "-ltorch_cpu", "-lc10"]
    options = [request.param, "-std=c++20", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, *include, folder / "x.cpp", *link, "-o", folder / "x.so"], check=True)
    return folder / "x.so"


def test_each_operator_has_the_namespace_that_torch_gives_it(library: Path) -> None:
    program = (
        "import sys, torch; torch.ops.load_library(sys.argv[1])\n"
        "print([s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith('space_')])"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", program, library], capture_output=True, text=True, check=True)
    registered = sorted(eval(done.stdout))
    facts = reader.read(library)
    assert sorted(f"{s.namespace}::{s.schema.op}" for s in facts.schemas) == registered
    assert "torch C++ ABI" in facts.abi
    assert "_GLIBCXX_USE_CXX11_ABI=1" in facts.abi


def test_a_stripped_library_tells_the_same(library: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "s.so"
    shutil.copy(library, stripped)
    subprocess.run(["strip", stripped], check=True)
    assert reader.read(stripped).stripped
    assert reader.read(stripped).schemas == reader.read(library).schemas
