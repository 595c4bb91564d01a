"""Samples for operators of vllm-xpu-kernels, built for this CPU from a checkout (docs/esimd-host.md):

    python -m esimd_ops host-build vllm-xpu-kernels -o built --only 'csrc/*' --checks
    PYTHONPATH=built python -m esimd_ops races --namespace csrc_torch_bindings --samples vllm_xpu_kernels.py

No kernel of theirs is here: shapes, and what torch says that the results are.
"""

from functools import partial

import torch
import torch.nn.functional as F

TOKENS, HIDDEN, HEADS, SIZE = 5, 256, 4, 64
EPS = 1e-6
torch.manual_seed(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape).half()


def unwritten(*shape: int) -> torch.Tensor:
    return torch.full(shape, torch.nan).half()


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x.float(), (HIDDEN,), weight.float(), EPS).half()


def gated(input: torch.Tensor, act, **output) -> dict[str, torch.Tensor]:
    x, y = input.float().chunk(2, -1)
    return dict.fromkeys(output, (act(x) * y).half())


def added(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, **_) -> dict[str, torch.Tensor]:
    total = input + residual
    return {"residual": total, "input": normed(total, weight)}


def turned(positions: torch.Tensor, cos_sin_cache: torch.Tensor, **named) -> dict[str, torch.Tensor]:
    """Rotary positions in the way of GPT-NeoX, in the type of the tensors as the kernel."""
    cos, sin = (part[:, None] for part in cos_sin_cache[positions].chunk(2, -1))

    def of(x: torch.Tensor) -> torch.Tensor:
        one, other = x.view(len(positions), -1, SIZE).chunk(2, -1)
        return torch.cat((one * cos - other * sin, other * cos + one * sin), -1).view(x.shape)

    return {name: of(named[name]) for name in ("query", "key")}


def angles() -> torch.Tensor:
    turns = torch.arange(64.0)[:, None] * torch.linspace(0, 1, SIZE // 2)
    return torch.cat((turns.cos(), turns.sin()), 1).half()


GATED = {"silu_and_mul": F.silu, "gelu_and_mul": F.gelu, "gelu_tanh_and_mul": partial(F.gelu, approximate="tanh")}
PLAIN = ("gelu_fast", "gelu_new", "gelu_quick", "relu2_no_mul")

SAMPLES = {
    **{
        name: (unwritten(TOKENS, HIDDEN), drawn(TOKENS, 2 * HIDDEN))
        for name in (*GATED, "mul_and_silu", "swigluoai_and_mul")
    },
    **{name: (unwritten(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN)) for name in PLAIN},
    "fatrelu_and_mul": (unwritten(TOKENS, HIDDEN), drawn(TOKENS, 2 * HIDDEN), 0.5),
    "rms_norm": (unwritten(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN), drawn(HIDDEN), EPS),
    "fused_add_rms_norm": (drawn(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN), drawn(HIDDEN), EPS),
    "rotary_embedding": (
        torch.arange(TOKENS), drawn(TOKENS, HEADS * SIZE), drawn(TOKENS, HEADS * SIZE), SIZE, angles(), True,
    ),
}  # fmt: skip
IN_PLACE = {"fused_add_rms_norm": ("input", "residual"), "rotary_embedding": ("query", "key")}
RESULT = dict.fromkeys(("rms_norm", "silu_and_mul"), ("result",))
WRITES = {**dict.fromkeys(SAMPLES, ("out",)), **RESULT, **IN_PLACE}
INPLACE = {name: IN_PLACE.get(name, ()) for name in SAMPLES}
REFERENCE = {
    **{name: partial(gated, act=act) for name, act in GATED.items()},
    "rms_norm": lambda input, weight, **_: {"result": normed(input, weight)},
    "fused_add_rms_norm": added,
    "rotary_embedding": turned,
}
