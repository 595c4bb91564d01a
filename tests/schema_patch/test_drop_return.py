"""What `apply --returns void` writes compiles, loads and runs: every kind of implementation, on the real torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from schema_patch.commands import main

SOURCE = r"""
#include <torch/library.h>
#include <ATen/ATen.h>
#include <tuple>
#include <vector>

namespace ns {
template <typename T>
at::Tensor norm(at::Tensor input, at::Tensor output, at::Tensor weight, double eps) { return output.copy_(input * T(2)); }
at::Tensor& gemv(const at::Tensor& input, at::Tensor& weight, at::Tensor& output) { return output.copy_(input + 1); }
at::Tensor int4(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& s, at::Tensor output) noexcept {
  return output.copy_(x + (s ? 1 : 0));
}
}
std::tuple<at::Tensor, at::Tensor> topk(at::Tensor x, at::Tensor v, at::Tensor i, int64_t t) { return {v.copy_(x), i.copy_(x)}; }
std::vector<at::Tensor> list(at::TensorList all, at::Tensor out) { out.copy_(all[0]); return {out}; }
at::Tensor over(at::Tensor x, at::Tensor o) { return o.copy_(x); }
at::Tensor over(at::Tensor x, at::Tensor o, int64_t a, int64_t b, int64_t c) { return o.copy_(x * 3); }

TORCH_LIBRARY(esimd_ops, m) {
  m.def("esimd_rms_norm(Tensor input, Tensor output, Tensor weight, float eps) -> Tensor");
  m.impl("esimd_rms_norm", &ns::norm<double>);
  m.def("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor output) -> Tensor");
  m.impl("esimd_gemv_fp16", at::kCPU, ns::gemv);
  m.def("esimd_gemv_int4(Tensor input, Tensor weight, Tensor? weight_scale, Tensor output) -> Tensor", TORCH_FN(ns::int4));
  m.def("esimd_moe_topk(Tensor router_logits, Tensor top_values, Tensor top_indices, int T) -> (Tensor, Tensor)");
  m.impl("esimd_moe_topk", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(topk)));
  m.def("esimd_moe_silu_mul(Tensor input, Tensor output, int N_gate_up, int N_half, int total_rows) -> Tensor");
  m.impl("esimd_moe_silu_mul", static_cast<at::Tensor (*)(at::Tensor, at::Tensor, int64_t, int64_t, int64_t)>(&over));
  m.def("esimd_moe_gelu_tanh_mul(Tensor input, Tensor output, int N_gate_up, int N_half, int total_rows) -> Tensor");
  m.impl("esimd_moe_gelu_tanh_mul", [](at::Tensor x, at::Tensor o, int64_t, int64_t, int64_t) -> at::Tensor { return o.copy_(x * 4); });
}
"""

PROGRAM = """
import sys, torch
torch.ops.load_library(sys.argv[1])
ops = torch.ops.esimd_ops
x, nan = torch.arange(4.0), lambda: torch.full((4,), float("nan"))
o = nan(); assert ops.esimd_rms_norm(x, o, x, 0.0) is None; assert o.equal(2 * x)
o = nan(); assert ops.esimd_gemv_fp16(x, x, o) is None; assert o.equal(x + 1)
o = nan(); assert ops.esimd_gemv_int4(x, x, x, o) is None; assert o.equal(x + 1)
v, i = nan(), nan(); assert ops.esimd_moe_topk(x, v, i, 1) is None; assert v.equal(x) and i.equal(x)
o = nan(); assert ops.esimd_moe_silu_mul(x, o, 1, 1, 1) is None; assert o.equal(3 * x)
o = nan(); assert ops.esimd_moe_gelu_tanh_mul(x, o, 1, 1, 1) is None; assert o.equal(4 * x)
for name in dir(ops):
    if name.startswith("esimd"):
        print(getattr(ops, name).default._schema)
"""


def build(source: Path, library: Path) -> None:
    torch_lib = Path(torch.__file__).parent / "lib"
    subprocess.run(
        [shutil.which("g++") or "c++", "-std=c++17", "-O0", "-g0", "-fPIC", "-shared", source, "-o", library,
         *(f"-isystem{d}" for d in cpp_extension.include_paths()), f"-L{torch_lib}", f"-Wl,-rpath,{torch_lib}",
         "-ltorch_cpu", "-lc10"],
        check=True,
    )  # fmt: skip


@pytest.mark.timeout(300)
def test_every_kind_of_implementation(tmp_path: Path) -> None:
    source = tmp_path / "ops.cpp"
    source.write_text(SOURCE)
    assert main.main(["apply", "--returns", "void", str(source)]) == 0
    build(source, tmp_path / "ops.so")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "ops.so"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    schemas = done.stdout.splitlines()
    assert len(schemas) == 6
    assert all(line.endswith("-> ()") and "!" in line for line in schemas)
    assert (
        "esimd_ops::esimd_moe_topk(Tensor router_logits, Tensor(a!) top_values, Tensor(b!) top_indices, int T) -> ()"
        in schemas
    )
