"""One fresh process with vLLM in it: loads what it is told in the order told, compiles a tiny model, says what came out.

    python model.py STEP,STEP,... [withheld]

Steps: plugin (vLLM loads its general plugins), guard (a user calls it), operators (the library PUBLISHED_OPS), fakes.
`withheld` takes the guard's digest out of vLLM's cache key again. Without operators there is no model: only the key is
told. Prints one line of JSON, the last on stdout.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

EPS = 1e-6


def prepare(steps: list[str]) -> None:
    for step in steps:
        if step == "plugin":
            from vllm.plugins import load_general_plugins

            load_general_plugins()
        elif step == "guard":
            from esimd_ops import guard

            guard.enable()
        elif step == "operators":
            torch.ops.load_library(os.environ["PUBLISHED_OPS"])
        elif step == "fakes":
            import esimd_fake_ops  # noqa: F401
        else:
            raise SystemExit(f"expected a step, found {step!r}")


def config() -> Any:
    """vLLM's own backend, which its CPU platform would turn off: pieces of a graph, each compiled by Inductor."""
    from vllm.compilation.passes.utility.fix_functionalization import FixFunctionalizationPass
    from vllm.config import CompilationMode, VllmConfig
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    FixFunctionalizationPass.__call__ = lambda self, graph: None  # as on the XPU platform
    made = VllmConfig()
    chosen = made.compilation_config
    chosen.mode = CompilationMode.VLLM_COMPILE
    chosen.backend = "inductor"
    chosen.compile_sizes = []
    chosen.splitting_ops = ["tiny::attention"]
    chosen.pass_config.fuse_rope_kvcache_cat_mla = False
    return made


@torch.library.custom_op("tiny::attention", mutates_args=[])
def attention(x: torch.Tensor) -> torch.Tensor:
    return x + x.mean(0, keepdim=True)


@attention.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def parameter(value: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(value, requires_grad=False)


def model(vllm_config: Any) -> torch.nn.Module:
    from vllm.compilation.decorators import support_torch_compile

    # Operators are reached as users reach them: at the call, which is where torch binds them for the first time. Around
    # them are only matrix products, for which Inductor has no C++ to compile, so that a process takes seconds.
    class Tiny(torch.nn.Module):
        def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
            super().__init__()
            self.weight = parameter(torch.linspace(0.5, 1.5, 64))
            self.mix = parameter(torch.randn(64, 64, generator=torch.Generator().manual_seed(0)) / 8)
            self.nothing = parameter(torch.zeros(64, 64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kernels = torch.ops.custom_esimd_kernels_vllm
            normed = x @ self.nothing
            kernels.esimd_rms_norm(x, normed, self.weight, EPS)
            hidden = torch.ops.tiny.attention(normed @ self.mix) @ self.mix
            residual = x @ self.mix
            kernels.esimd_fused_add_rms_norm(hidden, residual, self.weight, EPS)
            buffer = hidden @ self.nothing
            returned = kernels.esimd_rms_norm(residual, buffer, self.weight, EPS)
            return torch.addmm(hidden, returned, self.mix) @ torch.addmm(self.mix, residual.T, buffer)

    return support_torch_compile(Tiny, dynamic_arg_dims={"x": 0})(vllm_config=vllm_config)


def compiled() -> dict[str, object]:
    from vllm.compilation.counter import compilation_counter
    from vllm.config import set_current_vllm_config
    from vllm.forward_context import set_forward_context

    vllm_config = config()
    with torch.inference_mode(), set_current_vllm_config(vllm_config), set_forward_context(None, vllm_config):
        tiny = model(vllm_config)
        inputs = [torch.randn(tokens, 64, generator=torch.Generator().manual_seed(tokens)) for tokens in (16, 5, 33)]
        got = [tiny(x.clone()) for x in inputs]
        expected = [tiny.forward(x.clone()) for x in inputs]  # eager, and last: it binds the operators
    wrong = sum(not torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(got, expected, strict=True))
    return {
        "wrong": wrong,
        "of": len(inputs),
        "pieces": compilation_counter.num_piecewise_graphs_seen,
        "compiled": compilation_counter.num_backend_compilations,
        "from_disk": compilation_counter.num_aot_artifacts_loaded + compilation_counter.num_compiled_artifacts_loaded,
        "directory": str(Path(vllm_config.compilation_config.local_cache_dir or "")),
    }


def fake_hands_the_buffer_back() -> bool:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x, output, weight = torch.empty(2, 64), torch.empty(2, 64), torch.empty(64)
        return torch.ops.custom_esimd_kernels_vllm.esimd_rms_norm(x, output, weight, EPS) is output


def main(steps: list[str], withheld: bool) -> dict[str, object]:
    prepare(steps)
    import vllm.envs

    if withheld:
        vllm.envs.compile_factors = vllm.envs.compile_factors.__wrapped__
    told = compiled() if "operators" in steps else {}
    if "fakes" in steps:
        told["right_fake"] = fake_hands_the_buffer_back()
    told["factors"] = {name: str(value) for name, value in vllm.envs.compile_factors().items()}
    if "esimd_ops.guard" in sys.modules:
        from esimd_ops import guard

        told["guarded"] = [decision.op for decision in guard.status().guarded]
    return {**told, "torch": torch.__version__, "vllm": vllm.__version__}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1].split(","), sys.argv[2:] == ["withheld"])))
