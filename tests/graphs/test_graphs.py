"""`esimd_ops graphs` on a process that calls operators in every way, and on the caches that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from esimd_ops.commands.main import esimd_ops
from esimd_ops.guard.decide import Action, Decision, operator_of, twin_name
from schema_patch.schemas import grammar

SERVER = """
import sys, torch, warnings
warnings.filterwarnings("ignore")
from esimd_ops import guard
from esimd_ops.graphs import live

lib = torch.library.Library("custom_esimd_kernels_vllm", "FRAGMENT")
for name in ("esimd_rms_norm", "esimd_gemv_int4", "esimd_gemv_fp16"):
    arguments = {"esimd_rms_norm": "Tensor input, Tensor(a!) output, Tensor weight, float eps",
                 "esimd_gemv_int4": "Tensor input, Tensor weight, Tensor weight_scale, Tensor(a!) output",
                 "esimd_gemv_fp16": "Tensor input, Tensor weight, Tensor(a!) output"}[name]
    if sys.argv[1] == "guarded":
        arguments = arguments.replace("(a!)", "")
    lib.define(f"{name}({arguments}) -> ()")
    output = [word.split()[-1] for word in arguments.split(",")].index("output")
    lib.impl(name, lambda *args, output=output: (args[output].fill_(2), None)[1], "CPU")
    torch.library.register_fake(f"custom_esimd_kernels_vllm::{name}", lambda *args: None)
ops = torch.ops.custom_esimd_kernels_vllm
recorder = live.start_if_asked(["custom_esimd_kernels_vllm"])
if sys.argv[1] == "guarded":
    print(guard.enable("custom_esimd_kernels_vllm"))

@torch.library.custom_op("serving::layer", mutates_args=())
def layer(x: torch.Tensor) -> torch.Tensor:
    output = torch.empty_like(x)
    ops.esimd_gemv_int4(x, x, x, output)
    return output + x

@layer.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile(fullgraph=True)
def forward(x):
    output = torch.zeros_like(x)
    ops.esimd_rms_norm(x, output, x, 1e-6)
    return torch.ops.serving.layer(output) + 1

x = torch.ones(4)
for _ in range(3):
    assert forward(x).tolist() == [5.0] * 4
out = torch.empty(4)
ops.esimd_gemv_fp16.default(x, x, out)
"""
NAMESPACE = "custom_esimd_kernels_vllm"


def graphs(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(esimd_ops, ["graphs", *words], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.stdout, result.stderr


@pytest.fixture(scope="module", params=["annotated", "guarded"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a process left: records and caches."""
    where = tmp_path_factory.mktemp("served")
    environment = {**os.environ, "SCHEMA_KIT_GRAPHS": str(where / "records"),
                   "TORCHINDUCTOR_CACHE_DIR": str(where / "inductor")}  # fmt: skip
    environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
    done = subprocess.run(
        [sys.executable, "-c", SERVER, request.param], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return where


def test_live_tells_traced_opaque_eager_and_absent(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEMA_KIT_GRAPHS", str(served / "records"))
    code, out, err = graphs("--live", "--format", "json")
    assert code == 0
    assert "process " in err
    found = json.loads(out)
    states = {op.partition("::")[2]: set(found[op]) for op in found if found[op]}
    assert states == {"esimd_rms_norm": {"traced"}, "esimd_gemv_int4": {"opaque"}, "esimd_gemv_fp16": {"eager"}}
    assert found[f"{NAMESPACE}::esimd_gemv_fp16"]["eager"].startswith("<string>:")
    assert found[f"{NAMESPACE}::esimd_moe_topk"] == {}
    code, out, _ = graphs("--live")
    assert "1 traced, 1 opaque, 1 eager, 43 absent" in out.splitlines()[-1]


def test_caches_tell_what_was_traced(served: Path) -> None:
    code, out, _ = graphs("--cache", str(served / "inductor"), "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert {op for op in found if found[op]} == {f"{NAMESPACE}::esimd_rms_norm"}
    assert found[f"{NAMESPACE}::esimd_rms_norm"] == {"traced": str(served / "inductor")}


def test_nothing_to_read_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEMA_KIT_GRAPHS", str(tmp_path))
    code, out, err = graphs("--live")
    assert (code, out) == (2, "")
    assert "found none" in err
    for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert graphs()[0] == 2


@pytest.mark.parametrize(
    "text", ["a_b::c(Tensor x) -> ()", "a::b_c(Tensor x) -> ()", "lib2::op_1.out_2(Tensor x) -> ()"]
)
def test_a_twin_s_name_tells_its_operator(text: str) -> None:
    decision = Decision(text.partition("(")[0], Action.GUARDED, "", grammar.parse(text))
    assert operator_of(twin_name(decision)) == decision.op
