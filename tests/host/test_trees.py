"""Trees as others lay them out: relative paths, Python modules, kernels in plain .cpp, and what does not compile or load
beside what does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "include/mine.h": "#include <ATen/ATen.h>\nat::Tensor twice(at::Tensor x);\nint helping(int);\n",
    # A namespace that is called like its file, and needs a kernel of a plain .cpp and a helper that names neither.
    "csrc/mylib.cpp": '#include <torch/library.h>\n#include "mine.h"\n'
    'TORCH_LIBRARY(mylib, m) { m.def("twice(Tensor x) -> Tensor", &twice); }\n',
    "csrc/kernels/twice.cpp": '#include <c10/xpu/XPUStream.h>\n#include "mine.h"\n'
    "at::Tensor twice(at::Tensor x) {\n  at::Tensor made = at::empty_like(x);\n"
    "  const float* in = x.data_ptr<float>();\n  float* out = made.data_ptr<float>();\n"
    "  const float factor = helping(1);\n"
    "  c10::xpu::getCurrentXPUStream(x.device().index()).queue().parallel_for(sycl::range<1>(x.numel()),\n"
    "      [=](sycl::id<1> i) { out[i] = in[i] * factor; });\n  return made;\n}\n",
    "csrc/helping.cpp": "int helping(int one) { return one + one; }\n",
    "csrc/program.cpp": "int main() { return 0; }\n",
    # A Python module whose functions take and give tensors.
    "csrc/pybound.sycl": "#include <torch/extension.h>\nat::Tensor thrice(at::Tensor x) { return x + x + x; }\n"
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("thrice", &thrice); }\n',
    # Registers what a source that does not compile would define.
    "csrc/bad.cc": '#include <torch/library.h>\nat::Tensor lost(at::Tensor x);\nextern "C" int64_t of_c(int64_t);\n'
    'TORCH_LIBRARY(badns, m) {\n  m.def("lost(Tensor x) -> Tensor", &lost);\n'
    '  m.def("of_c(int n) -> int", [](int64_t n) { return of_c(n); });\n'
    '#ifdef KEPT\n  m.def(C10_STRINGIZE(KEPT) "(int n) -> int", [](int64_t n) { return n + 1; });\n#endif\n}\n',
    # Needs what is no function.
    "csrc/data.cc": "#include <torch/library.h>\nextern int missing_number;\n"
    'TORCH_LIBRARY(datans, m) { m.def("number() -> int", []() -> int64_t { return missing_number; }); }\n',
    "csrc/broken.sycl": "#include <torch/library.h>\nat::Tensor lost(at::Tensor x) { return no_such_thing(x); }\n",
    # Its acc_type is torch's only for who includes torch's header; there, the device's names are torch's for a while.
    "csrc/good.sycl": "#include <ATen/ATen.h>\n#include <torch/library.h>\ntemplate <class T> using acc_type = T;\n"
    "namespace at::native::xpu { constexpr acc_type<int> added = 1; }\n"
    "at::Tensor one(at::Tensor x) { return x + at::native::xpu::added; }\n"
    'TORCH_LIBRARY(goodns, m) { m.def("one(Tensor x) -> Tensor", &one); }\n',
    # Of one width each; both are one library. And one of two widths.
    "include/width.h": "static constexpr int WARP = 32;\nconstexpr unsigned kWidth = WARP;\n",
    "csrc/wide.sycl": '#include <sycl/sycl.hpp>\n#include <torch/library.h>\n#include "width.h"\nint narrow();\n'
    "[[sycl::reqd_sub_group_size(kWidth)]] int wide() { return sycl::kSubGroupSize; }\n"
    "#include <ATen/AccumulateType.h>\nTORCH_LIBRARY(widths, m) {\n"
    '  m.def("both() -> int", []() -> int64_t { return 100 * wide() + narrow(); });\n'
    '  m.def("on_cpu(Tensor x) -> bool", [](at::Tensor x) {\n'
    "    return x.is_xpu() && sizeof(at::acc_type<at::Half, true>) == 4; });\n}\n",
    "csrc/narrow.sycl": "#include <sycl/sycl.hpp>\nint narrow() { return sycl::kSubGroupSize; }\n",
    "csrc/mixed.sycl": "// sub_group_size(16) sub_group_size(32)\n",
}

USE = """
import torch, mylib, pybound, goodns, widths, badns
x = torch.arange(4.0)
assert torch.equal(torch.ops.mylib.twice(x), 2 * x)
assert torch.equal(pybound.thrice(x), 3 * x)
assert torch.equal(torch.ops.goodns.one(x), x + 1)
assert torch.ops.widths.both() == 3216
assert torch.ops.widths.on_cpu(x)
assert torch.ops.badns.kept(3) == 4
for call in (lambda: torch.ops.badns.lost(x), lambda: torch.ops.badns.of_c(3)):
    try:
        call()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    root = tmp_path_factory.mktemp("trees")
    for name, text in FILES.items():
        path = root / "my tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "esimd_ops", "host-build", "my tree", "-o", "out", "-D", "KEPT=kept"]
    search = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": search}
    return root, subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment)


def test_what_compiles_and_loads_is_announced(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = built
    assert "namespaces: badns, goodns, mylib, widths; modules: pybound" in done.stderr, done.stderr
    names = sorted(Path(line).name for line in done.stdout.split())
    assert names == ["bad.so", "good.so", "mylib.so", "pybound.so", "wide.so"]


def test_what_does_not_says_what_it_lacks(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = built
    assert done.returncode == 1
    broken = "csrc/broken.sycl: error: did not compile: csrc/broken.sycl:2: 'no_such_thing' was not declared"
    assert broken in done.stderr
    assert done.stderr.count("did not compile") == 2
    assert "bad.so: no source that compiled defines lost(at::Tensor); of_c: called, they throw" in done.stderr
    data = "data.so: error: does not load: it needs missing_number, which no source that compiled defines"
    assert data in done.stderr
    assert "10 of 12 sources compiled; all that was said of the others: out/failed.txt" in done.stderr
    assert "no_such_thing(x)" in (built[0] / "out/failed.txt").read_text()
    assert "csrc/mixed.sycl: error: did not compile: asks for sub-groups of 16 and 32" in done.stderr
    assert "csrc/program.cpp: left out" in done.stderr


def test_it_works_in_a_process_of_its_own(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    root, _ = built
    environment = {**os.environ, "PYTHONPATH": str(root / "out")}
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False, env=environment)
    lost = [f"{name} is defined by no source that compiled for the host" for name in ("lost(at::Tensor)", "of_c")]
    assert (done.returncode, done.stdout.splitlines()) == (0, lost), done.stderr


def test_what_is_not_there_is_unknown_and_not_wrong(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    root, _ = built
    (root / "samples.py").write_text('import torch\nSAMPLES = {"lost": (torch.ones(2),)}\nWRITES = {"lost": ()}\n')
    search = os.pathsep.join((str(root / "out"), str(Path(__file__).parents[2])))
    command = [sys.executable, "-m", "esimd_ops", "check", "--namespace", "badns", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--samples", root / "samples.py", "--repeat", "2"],
        capture_output=True, text=True, check=False, cwd=root, env={**os.environ, "PYTHONPATH": search},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "unknown" in said
    assert "wrong" not in said
    assert "PA111" not in said
