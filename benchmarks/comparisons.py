"""What `benchmarks/ops.py` compares: each operator, and what a PyTorch user would write on the same tensors.

Knows operators and PyTorch; measures nothing. Sizes are those of decoding: few rows, matrices of 2048 to 16384.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from esimd_ops import reference, samples
from esimd_ops.reference import Decoder, fp8
from esimd_ops.samples import build

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One comparison. `make()` gives ours and theirs on tensors of their own; `bytes` have to move in one call."""

    operator: str
    sizes: str
    against: str
    bytes: int
    make: Callable[[], tuple[Work, Work]]


def half(*shape: int, spread: float = 1.0) -> Tensor:
    return build.normal(*shape, spread=spread)


def size(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def int4(M: int, N: int, K: int) -> Case:
    """Against PyTorch's own int4 product, which takes bfloat16."""
    name = "esimd_gemv_int4" if M == 1 else "esimd_gemm_int4_pgrp"

    def make() -> tuple[Work, Work]:
        x, output = half(M, K), half(M, N)
        weight, scale = build.int4_matrix(N, K)
        nibbles = torch.stack((weight & 15, weight >> 4), -1).flatten(-2).int()
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(nibbles, 2)
        zeros = torch.stack((scale.T, torch.zeros_like(scale.T)), -1).bfloat16().contiguous()
        wide = x.bfloat16()
        ours = getattr(torch.ops.esimd_ops, name)
        return (
            lambda: ours(x, weight, scale, output),
            lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(wide, packed, 128, zeros),
        )

    moved = N * K // 2 + 2 * N * K // 128 + 2 * M * (N + K)
    return Case(name, f"M {M} N {N} K {K}", "_weight_int4pack_mm_for_cpu, bf16", moved, make)


def fp16(M: int, N: int, K: int) -> Case:
    def make() -> tuple[Work, Work]:
        x, weight, output = half(M, K), half(N, K, spread=0.02), half(M, N)
        return (
            lambda: torch.ops.esimd_ops.esimd_gemv_fp16(x, weight, output),
            lambda: torch.matmul(x, weight.T, out=output),
        )

    return Case("esimd_gemv_fp16", f"M {M} N {N} K {K}", "matmul, fp16", 2 * (N * K + M * (N + K)), make)


def fp8_weights(M: int, N: int, K: int) -> Case:
    """There is no fp8 product for CPU tensors of this layout: a user widens the weight, or keeps it wide."""
    name = "esimd_gemv_fp8_pert" if M == 1 else "esimd_gemm_fp8_pert"

    def make() -> tuple[Work, Work]:
        x, output, scale = half(M, K), half(M, N), torch.tensor([0.02])
        weight = build.fp8_matrix(N, K)
        wide = (fp8(weight, Decoder.EXACT, torch.float32) * scale).half()
        ours = getattr(torch.ops.esimd_ops, name)
        return lambda: ours(x, weight, scale, output), lambda: torch.matmul(x, wide.T, out=output)

    return Case(name, f"M {M} N {N} K {K}", "matmul of the widened fp16 weight", N * K + 2 * M * (N + K), make)


def rms_norm(T: int, K: int) -> Iterator[Case]:
    @torch.compile(dynamic=False)
    def formula(x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-6) * weight.float()).half()

    def make(theirs: Callable[[Tensor, Tensor], Tensor]) -> tuple[Work, Work]:
        x, output, weight = half(T, K), half(T, K), build.norm_weight(K)
        return (
            lambda: torch.ops.esimd_ops.esimd_rms_norm(x, output, weight, 1e-6),
            lambda: theirs(x, weight),
        )

    sizes, moved = f"T {T} K {K}", 4 * T * K + 2 * K
    eager = lambda x, weight: F.rms_norm(x, (K,), weight, 1e-6)  # noqa: E731
    yield Case("esimd_rms_norm", sizes, "F.rms_norm", moved, lambda: make(eager))
    yield Case("esimd_rms_norm", sizes, "the formula, compiled", moved, lambda: make(formula))


def add_norm(T: int, K: int) -> Case:
    @torch.compile(dynamic=False)
    def formula(hidden: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        total = hidden.float() + residual.float()
        inverse = torch.rsqrt((total * total).mean(-1, keepdim=True) + 1e-6)
        return (total.half().float() * inverse * weight.float()).half(), total.half()

    def make() -> tuple[Work, Work]:
        hidden, residual, weight = half(T, K), half(T, K), build.norm_weight(K)
        return (
            lambda: torch.ops.esimd_ops.esimd_fused_add_rms_norm_batched(hidden, residual, weight, 1e-6),
            lambda: formula(hidden, residual, weight),
        )

    moved = 8 * T * K + 2 * K
    return Case("esimd_fused_add_rms_norm_batched", f"T {T} K {K}", "the formula, compiled", moved, make)


def moe(E: int, N: int, K: int, T: int) -> Case:
    """One product for all experts, against a loop over them with the weights kept wide."""

    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_moe_gemm_fp8_blockscale", (E, N, K, T)).arguments
        starts = arguments["expert_idx"].tolist()
        wide = half(E, N, K, spread=0.02)
        x, output, values = arguments["input"], arguments["output"], list(arguments.values())

        def loop() -> None:
            for e in range(E):
                if starts[e] < starts[e + 1]:
                    torch.matmul(x[starts[e] : starts[e + 1]], wide[e].T, out=output[starts[e] : starts[e + 1]])

        return lambda: torch.ops.esimd_ops.esimd_moe_gemm_fp8_blockscale(*values), loop

    busy = min(E, T)
    return Case(
        "esimd_moe_gemm_fp8_blockscale",
        f"E {E} N {N} K {K} T {T}",
        "matmul in a loop over experts, fp16",
        busy * N * K + 2 * T * (N + K),
        make,
    )


def rope(T: int, q_heads: int, kv_heads: int) -> Case:
    """The reference, compiled: the same steps in plain PyTorch."""
    formula = torch.compile(reference.of("esimd_qkv_split_norm_rope"), dynamic=False)

    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_qkv_split_norm_rope", (T, q_heads, kv_heads, 1, 64)).arguments
        values = list(arguments.values())
        return lambda: torch.ops.esimd_ops.esimd_qkv_split_norm_rope(*values), lambda: formula(**arguments)

    sizes = f"T {T} heads {q_heads}+{kv_heads}, 256 wide, gated"
    moved = 2 * 2 * T * 256 * (2 * q_heads + 2 * kv_heads)
    return Case("esimd_qkv_split_norm_rope", sizes, "the formula, compiled", moved, make)


def topk(T: int) -> Case:
    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_moe_topk", (T,)).arguments
        values, logits = list(arguments.values()), arguments["router_logits"]

        def theirs() -> tuple[Tensor, Tensor]:
            best, indices = torch.softmax(logits.float(), -1).topk(8, -1)
            return (best / best.sum(-1, keepdim=True)).half(), indices.int()

        return lambda: torch.ops.esimd_ops.esimd_moe_topk(*values), theirs

    return Case("esimd_moe_topk", f"T {T} of 128 experts", "softmax and topk", T * (256 + 8 * 6), make)


def scatter(T: int, E: int, K: int) -> Case:
    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_moe_scatter_fused", (T, 8, E, K)).arguments
        values = list(arguments.values())

        def theirs() -> dict[str, Tensor]:
            return reference.of("esimd_moe_scatter_fused")(**arguments)

        return lambda: torch.ops.esimd_ops.esimd_moe_scatter_fused(*values), theirs

    return Case("esimd_moe_scatter_fused", f"T {T} E {E} K {K}, top 8", "argsort and index", 2 * 2 * 8 * T * K, make)


def silu_mul(T: int, N: int) -> Case:
    @torch.compile(dynamic=False)
    def formula(x: Tensor) -> Tensor:
        gate, up = x.float().chunk(2, -1)
        return (F.silu(gate) * up).half()

    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_moe_silu_mul", (T, N)).arguments
        values, x = list(arguments.values()), arguments["input"]
        return lambda: torch.ops.esimd_ops.esimd_moe_silu_mul(*values), lambda: formula(x)

    return Case("esimd_moe_silu_mul", f"T {T} N {N}", "the formula, compiled", 2 * 3 * T * N, make)


def gdn(N: int, H: int, HV: int) -> Case:
    """The delta rule of all sequences at once, with its pools indexed, compiled."""
    from esimd_ops.reference.gdn import _Layer, _sequential

    def make() -> tuple[Work, Work]:
        arguments = samples.make("esimd_gdn_conv_fused_seq", (N, H, HV)).arguments
        values = list(arguments.values())
        weights = [arguments[name] for name in ("conv_weight", "conv_bias", "A_log", "dt_bias")]
        layer = _Layer(H, HV, arguments["scale"], weights[0], weights[1], weights[2], weights[3], torch.float32)
        conv, ssm = arguments["conv_state"].clone(), arguments["ssm_state"].clone()
        conv_slots, ssm_slots = arguments["conv_state_indices"].long(), arguments["ssm_state_indices"].long()

        @torch.compile(dynamic=False)
        def formula(qkvz: Tensor, ba: Tensor) -> tuple[Tensor, Tensor]:
            x, z, b, a = _sequential(qkvz, ba, H, HV)
            history = conv[conv_slots]
            out, S = torch.vmap(layer.step)(x, history, b, a, ssm[ssm_slots])
            conv[conv_slots] = torch.cat((history[:, 1:], x[:, None]), 1)
            ssm[ssm_slots] = S.half()
            return out.half(), z.clone()

        return (
            lambda: torch.ops.esimd_ops.esimd_gdn_conv_fused_seq(*values),
            lambda: formula(arguments["qkvz"], arguments["ba"]),
        )

    moved = 2 * 2 * N * HV * 128 * 128
    return Case("esimd_gdn_conv_fused_seq", f"N {N} H {H} HV {HV}", "the formula, compiled", moved, make)


def cases(quick: bool) -> list[Case]:
    shapes = [(2048, 2048), (4096, 4096)] if quick else [(2048, 2048), (4096, 4096), (16384, 2048), (2048, 8192)]
    tokens = (1, 8) if quick else (1, 8, 64)
    chosen = [make(M, N, K) for make in (int4, fp16, fp8_weights) for N, K in shapes for M in tokens]
    for T, K in [(1, 4096), (64, 4096)] if quick else [(1, 2048), (1, 8192), (8, 4096), (64, 4096)]:
        chosen += [*rms_norm(T, K), add_norm(T, K)]
    chosen += [moe(16, 512, 1024, 16), *([] if quick else [moe(64, 1024, 2048, 64)])]
    for T in (8,) if quick else (1, 8, 64):
        chosen += [rope(T, 16, 2), topk(T), scatter(T, 128, 2048), silu_mul(8 * T, 768), gdn(T, 8, 16)]
    return chosen
