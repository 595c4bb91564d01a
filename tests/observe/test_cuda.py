"""On an NVIDIA device: one liar among honest operators, of kernels that run on after their call has returned.

The kernels are compiled by NVRTC, which comes with torch. The liar is also a C++ extension of its own: of nvcc's kernel,
and of ATen's on CUDA tensors, for which g++ is enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import cpp_extension

from esimd_ops.observe import Seen, memory, observe
from schema_patch.model import Severity, Verdict

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT RUN: this machine has no CUDA device")

KERNEL = """
extern "C" __global__ void twice(const float* x, float* out, int n, int clocks) {
  for (long long start = clock64(); clock64() - start < clocks;) {}
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = 2 * x[i];
}
"""
LAUNCH = """
#include <ATen/cuda/CUDAContext.h>
__global__ void twice(const float* x, float* out, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = 2 * x[i];
}
void run(const at::Tensor& x, const at::Tensor& out) {
  int n = x.numel();
  twice<<<(n + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
}
"""
ATEN = "void run(const at::Tensor& x, const at::Tensor& out) { out.copy_(x * 2); }"
EXTENSION = """
#include <ATen/ATen.h>
#include <torch/library.h>
%(run)s
at::Tensor more(const at::Tensor& x) { return x + 1; }
TORCH_LIBRARY(%(name)s, m) {
  m.def("liar(Tensor x, Tensor out) -> ()");
  m.def("honest(Tensor x, Tensor(a!) out) -> ()");
  m.def("fresh(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(%(name)s, CUDA, m) {
  m.impl("liar", &run);
  m.impl("honest", &run);
  m.impl("fresh", &more);
}
"""
COMPILERS = {"nvcc": (LAUNCH, ".cu"), "gxx": (ATEN, ".cpp")}
SLOW = 20_000_000  # clocks: over 10 ms, long after the call has returned


@pytest.fixture(scope="module")
def library() -> object:
    library = torch.library.Library("observed_cuda", "FRAGMENT")
    kernel: Any = torch.cuda._compile_kernel(KERNEL, "twice")
    kept: list[Tensor] = []

    def twice(x: Tensor, out: Tensor, clocks: int = 0) -> None:
        kernel(grid=(-(-x.numel() // 128), 1, 1), block=(128, 1, 1), args=[x, out, x.numel(), clocks])

    def elsewhere(x: Tensor, out: Tensor) -> None:
        """On a stream of its own, which the caller's stream waits for only at the end."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        args = [x, out, x.numel(), SLOW]
        kernel(grid=(-(-x.numel() // 128), 1, 1), block=(128, 1, 1), args=args, stream=stream)
        out.record_stream(stream)

    def fresh(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        twice(x, out, SLOW)
        return out

    def keeps(x: Tensor) -> Tensor:
        kept.append(torch.empty_like(x)) if not kept else None
        twice(x, kept[0])
        return kept[0]

    def halves(x: Tensor, out: Tensor, lie: bool) -> None:
        out.add_(1)
        if lie:
            x[9, 0] = 1

    for schema, function in {
        "liar(Tensor x, Tensor out) -> ()": lambda x, out: twice(x, out, SLOW),
        "liar_elsewhere(Tensor x, Tensor out) -> ()": elsewhere,
        "keeps(Tensor x) -> Tensor": keeps,
        "honest(Tensor x, Tensor(a!) out) -> ()": lambda x, out: twice(x, out, SLOW),
        "honest_elsewhere(Tensor x, Tensor(a!) out) -> ()": elsewhere,
        "fresh(Tensor x) -> Tensor": fresh,
        "halves(Tensor x, Tensor(a!) out, bool lie) -> ()": halves,
    }.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], function, "CUDA")
    return library


def x(size: int = 1000) -> Tensor:
    return torch.arange(1.0, size + 1, device="cuda")


@pytest.fixture(scope="module")
def seen(library: object) -> Seen:
    ops = torch.ops.observed_cuda
    with observe("observed_cuda") as seen:
        for _ in range(5):
            for op in (ops.liar, ops.liar_elsewhere, ops.honest, ops.honest_elsewhere):
                op(x(), torch.zeros(1000, device="cuda"))
            held = ops.keeps(x()), ops.fresh(x())
            ops.fresh(x())
            del held
        big = (memory.EXACT // 4) + 3 * memory.BLOCK
        ops.honest(x(big), torch.zeros(big, device="cuda"))
        ops.liar(x(big), torch.zeros(big, device="cuda"))
    return seen


def test_the_liars_are_found_and_nobody_else(seen: Seen) -> None:
    report = seen.report()
    found = {(finding.op, finding.code) for finding in report.findings if finding.severity is Severity.ERROR}
    lies = {(f"observed_cuda::{name}", "SP101") for name in ("liar", "liar_elsewhere")}
    assert found - {("observed_cuda::keeps", "OB101")} == {*lies, ("observed_cuda::keeps", "SP104")}
    right = {row.op for row in report.checked if row.verdict is Verdict.RIGHT}
    assert right == {f"observed_cuda::{name}" for name in ("honest", "honest_elsewhere", "fresh")}


def test_what_is_large_is_compared_on_the_device_by_its_checksums(seen: Seen) -> None:
    times = seen.record.operators["observed_cuda::liar"].writes["out"]
    assert times.calls == 6
    assert times.bytes > memory.EXACT


def test_halves_of_rows_are_told_apart_where_blocks_are_not(library: object) -> None:
    whole = torch.zeros(4096, 3072, device="cuda")
    for lie, written in ((False, {"out"}), (True, {"x", "out"})):
        with observe("observed_cuda") as seen:
            torch.ops.observed_cuda.halves(whole[:, :1536], whole[:, 1536:], lie)
        assert {*seen.record.operators["observed_cuda::halves"].writes} == written


def test_checksums_are_the_same_on_the_device_and_on_the_host() -> None:
    words = torch.randint(0, 256, (5 * memory.BLOCK + 17,), dtype=torch.uint8)
    assert torch.equal(memory.checksums(words), memory.checksums(words.cuda()).cpu())


def test_a_call_that_is_captured_is_not_watched_and_is_said(library: object) -> None:
    inputs, out = x(), torch.zeros(1000, device="cuda")
    with observe("observed_cuda") as seen:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.ops.observed_cuda.honest(inputs, out)
        graph.replay()
        torch.cuda.synchronize()
    assert out[1] == 4
    assert seen.record.operators["observed_cuda::honest"].unwatched == {"captured into a graph": 1}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_extension_with_one_liar(compiler: str, tmp_path: Path) -> None:
    if compiler == "nvcc" and cpp_extension.CUDA_HOME is None:
        pytest.skip("NOT RUN: nvcc is not on this machine")
    name, (run, suffix) = f"observed_{compiler}", COMPILERS[compiler]
    source = tmp_path / f"extension{suffix}"
    source.write_text(EXTENSION % {"name": name, "run": run})
    cpp_extension.load(name, [str(source)], build_directory=str(tmp_path), is_python_module=False)
    ops = getattr(torch.ops, name)
    with observe(name) as seen:
        for _ in range(3):
            ops.liar(x(), torch.zeros(1000, device="cuda"))
            ops.honest(x(), torch.zeros(1000, device="cuda"))
            ops.fresh(x())
    report = seen.report()
    assert [(finding.op, finding.code) for finding in report.findings] == [(f"{name}::liar", "SP101")]
    assert sum(row.verdict is Verdict.RIGHT for row in report.checked) == 2
