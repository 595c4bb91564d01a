"""Samples for operators of sgl-kernel-xpu, built for this CPU from a checkout (docs/esimd-host.md):

    python -m esimd_ops host-build sgl-kernel-xpu -o built -D USE_MOE --only 'src/*' --checks
    PYTHONPATH=built python -m esimd_ops races --namespace sgl_kernel --samples sgl_kernel_xpu.py

No kernel of theirs is here: shapes, and what torch says that the results are.
"""

import torch
import torch.nn.functional as F

TOKENS, HIDDEN, EXPERTS, TOP = 5, 256, 8, 2
EPS = 1e-6
torch.manual_seed(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape).half()


def unwritten(*shape: int) -> torch.Tensor:
    return torch.full(shape, torch.nan).half()


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x.float(), (HIDDEN,), weight.float(), EPS).half()


def silu(input: torch.Tensor, **_) -> dict[str, torch.Tensor]:
    x, y = input.float().chunk(2, -1)
    return {"out": (F.silu(x) * y).half()}


def added(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, **_) -> dict[str, torch.Tensor]:
    total = input + residual
    return {"residual": total, "input": normed(total, weight)}


def stored(k, v, k_cache, v_cache, indices) -> dict[str, torch.Tensor]:
    return {"k_cache": k_cache.index_copy(0, indices, k), "v_cache": v_cache.index_copy(0, indices, v)}


TOPK = (torch.full((TOKENS, TOP), torch.nan), torch.full((TOKENS, TOP), -77, dtype=torch.int32))
SAMPLES = {
    **{
        name: (unwritten(TOKENS, HIDDEN), drawn(TOKENS, 2 * HIDDEN))
        for name in ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")
    },
    **{
        name: (unwritten(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN), drawn(HIDDEN), EPS)
        for name in ("rmsnorm", "gemma_rmsnorm")
    },
    "fused_add_rmsnorm": (drawn(TOKENS, HIDDEN), drawn(TOKENS, HIDDEN), drawn(HIDDEN), EPS),
    "topk_softmax": (*TOPK, drawn(TOKENS, EXPERTS), True),
    "moe_sum": (drawn(TOKENS, TOP, HIDDEN), unwritten(TOKENS, HIDDEN)),
    "moe_sum_reduce": (drawn(TOKENS, TOP, HIDDEN), unwritten(TOKENS, HIDDEN), 1.5),
    "store_cache": (drawn(3, HIDDEN), drawn(3, HIDDEN), drawn(9, HIDDEN), drawn(9, HIDDEN), torch.tensor([1, 4, 8])),
}
IN_PLACE = {"fused_add_rmsnorm": ("input", "residual"), "store_cache": ("k_cache", "v_cache")}
NAMED = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")
WRITES = {
    **dict.fromkeys(SAMPLES, ("output",)),
    **dict.fromkeys(NAMED, ("out",)),
    "topk_softmax": ("topk_weights", "topk_indices"),
    **IN_PLACE,
}
INPLACE = {name: IN_PLACE.get(name, ()) for name in SAMPLES}
REFERENCE = {
    "silu_and_mul": silu,
    "rmsnorm": lambda input, weight, **_: {"output": normed(input, weight)},
    "fused_add_rmsnorm": added,
    "moe_sum": lambda input, **_: {"output": input.float().sum(1).half()},
    "moe_sum_reduce": lambda input, **_: {"output": (1.5 * input.float().sum(1)).half()},
    "store_cache": stored,
}
